"""The HTTP formats of model providers."""

from .anthropic import Anthropic
from .gemini import Gemini
from .in_band import failed_with
from .openai_chat import OpenAIChat
from .openai_responses import OpenAIResponses

__all__ = ["Anthropic", "Gemini", "OpenAIChat", "OpenAIResponses", "failed_with"]
