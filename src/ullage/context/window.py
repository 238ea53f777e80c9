"""How many tokens does the window hold?

What the user says wins, unless the provider has refused less; else what the provider said when it was full; else the
model's card; else a default, and then that is said.
"""

from ullage.models import ModelTable, Window

__all__ = ["window_of"]


def window_of(models: ModelTable, model: str, *, said: int | None = None, learnt: int | None = None) -> Window:
    """`said` is the user's word, `learnt` what an overflow taught."""
    return models.window(model, said if said is not None else learnt)
