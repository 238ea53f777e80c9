"""How is counted for a model that nobody knows?

By the vocabulary that speaks for those that are not public, in the chat template that its name suggests, within a wide
band. It must be asked for: a name that the table does not know stays an error elsewhere, for it may be mistyped.
"""

from ullage.models import Match, ModelCard

__all__ = ["unheard", "unheard_match"]

_MARK = "(unknown) "
"""No model is called so."""


def unheard(model: str) -> str:
    """The name by which the meter counts for a model that is in no table; what it learns of one is not another's."""
    return _MARK + model


def unheard_match(name: str) -> Match | None:
    if not name.startswith(_MARK):
        return None
    return Match(asked=name, card=ModelCard(id=name, provider="none", family="unknown"), host=None, how="id")
