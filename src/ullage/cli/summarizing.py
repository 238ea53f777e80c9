"""How does a verb have one of the user's models put something into fewer words?"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from ullage.app.delegates import open_delegate
from ullage.app.summarizing import DelegateSummarizer
from ullage.config import Flags, load
from ullage.context import Summarizer
from ullage.delegate import RouteRequest, route

from .output import say

__all__ = ["open_summarizer"]


@asynccontextmanager
async def open_summarizer(model: str, config: Path | None) -> AsyncGenerator[Summarizer]:
    """By the policy of the settings, with its budgets and on its bill; refused where it knows no such model."""
    loaded = load(Flags(config=config), os.environ, Path.cwd())
    say(*(f"ullage: {issue.sentence()}" for issue in loaded.pending_issues))
    async with open_delegate(loaded.settings, environment=os.environ) as delegate:
        summarizer = DelegateSummarizer(delegate=delegate, model=model)
        route(RouteRequest(prompt_tokens=0, force_model=model), delegate.policy, delegate.models)
        yield summarizer
