"""Session and input filter for the OpenAI Agents SDK.

    session = CompactingSession(SQLiteSession("42"), lambda: Context(model="gpt-5.6-sol"))
    await Runner.run(agent, prompt, session=session, run_config=RunConfig(call_model_input_filter=session.fit))

The SDK reads a session only when a run begins, and calls the filter before every call of the model: this object is
both. The inner session keeps every item as it was; what the model receives is compacted. Items that are kept are the
same objects. Needs the extra `openai-agents`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ullage.context import Context, Summarizer, SummaryAnswer, SummaryRequest
from ullage.messages import Format
from ullage.tool import Json, JsonObject

from .history_sync import Begin, Following, Shown, begins, load

__all__ = ["CompactingSession", "ModelSummarizer"]

_EXTRA = "openai-agents"


class _Conversion:
    """Passes items through, since they are those of the Responses API."""

    def read(self, message: object) -> Shown:
        return Shown(natives=(message,))

    def write(self, natives: Sequence[object]) -> object:
        return natives[0]


@dataclass(slots=True)
class CompactingSession:
    """A session whose history fits the context window. Pass it to a run both as session and as filter:

        Runner.run(agent, prompt, session=it, run_config=RunConfig(call_model_input_filter=it.fit))

    Args:
        inner: A session of the SDK, which stores the full history.
        begin: Makes the `Context` of a new conversation. If it has no summarizer, the agent's own model summarises as
            soon as the filter has seen the agent. Its format is `openai-responses`, given or not.
        tell: Called with the `context_status` event whenever the session is read or filtered.
    """

    inner: Any
    begin: Begin
    tell: Callable[[JsonObject], None] | None = field(default=None, kw_only=True)
    _following: Following = field(init=False)
    _agent: Any = field(init=False, default=None)
    _kept: list[Any] = field(init=False, default_factory=list[Any])
    """The known items of the inner session."""
    _shown: list[Any] = field(init=False, default_factory=list[Any])
    """The same items as the run passed them last."""
    _given: list[Any] = field(init=False, default_factory=list[Any])
    """The same items as they were returned to the run."""

    def __post_init__(self) -> None:
        self._following = Following(begin=self._begin_context, conversion=_Conversion())

    def _begin_context(self) -> Context:
        context = self.begin()
        context.assume_format(Format.OPENAI_RESPONSES)
        return context

    @property
    def session_id(self) -> str:
        """Id of the inner session."""
        return self.inner.session_id

    @property
    def session_settings(self) -> Any:  # noqa: ANN401 - the SDK's own
        """Settings of the inner session; None if it has none."""
        return getattr(self.inner, "session_settings", None)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the compacted history. `limit` is passed to the inner session."""
        kept = list(await self.inner.get_items(limit))
        known = len(self._kept) if begins(kept, self._kept) else 0
        return await self._fit_items([*(self._given if known else ()), *kept[known:]], kept)

    async def add_items(self, items: list[Any]) -> None:
        """Append items to the inner session, uncompacted."""
        await self.inner.add_items(items)

    async def pop_item(self) -> Any:  # noqa: ANN401
        """Remove and return the last item of the inner session."""
        return await self.inner.pop_item()

    async def clear_session(self) -> None:
        """Remove all items of the inner session."""
        await self.inner.clear_session()

    async def fit(self, data: Any) -> Any:  # noqa: ANN401 - CallModelData to ModelInputData
        """Return the model input with a compacted history. Pass this method as `call_model_input_filter`."""
        sent, self._agent = data.model_data, data.agent
        items = list(sent.input)
        known = max(len(one) if begins(items, one) else 0 for one in (self._shown, self._given))
        kept = [*(self._kept if known else ()), *items[known:]]
        given = await self._fit_items(items, kept, lambda context: context.instruct(sent.instructions))
        return type(sent)(input=given, instructions=sent.instructions)

    async def _fit_items(
        self, items: list[Any], kept: list[Any], tell: Callable[[Context], None] = lambda _: None
    ) -> list[Any]:
        def told(context: Context) -> None:
            tell(context)
            if self._agent is None:
                return
            tools = [tool for tool in self._agent.tools if hasattr(tool, "params_json_schema")]
            context.offer(
                [
                    {
                        "type": "function",
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": cast("Json", tool.params_json_schema),
                    }
                    for tool in tools
                ]
            )
            if context.summarizer is None:
                context.summarizer = cast("Summarizer", ModelSummarizer(self._agent.model))

        given, prepared = await self._following.prepare(items, told)
        self._kept, self._shown, self._given = kept, items, given
        if self.tell is not None:
            self.tell(prepared.event)
        return list(given)


@dataclass(frozen=True, slots=True)
class ModelSummarizer:
    """Summarises with a model of the OpenAI Agents SDK, or the model of a given name."""

    model: Any
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        agents = load("agents", _EXTRA)
        model = self.model if hasattr(self.model, "get_response") else agents.MultiProvider().get_model(self.model)
        answer: Any = await model.get_response(
            request.instructions,
            request.text,
            agents.ModelSettings(max_tokens=request.max_tokens),
            tools=[],
            output_schema=None,
            handoffs=[],
            tracing=agents.ModelTracing.DISABLED,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        )
        output = answer.output
        said = [item for item in output if item.type == "message"]
        parts = [part for item in said for part in item.content]
        return SummaryAnswer(
            text="".join(part.text for part in parts if part.type == "output_text"),
            complete=all(item.status != "incomplete" for item in said),
            refused=any(part.type == "refusal" for part in parts),
        )
