"""Can what search by meaning needs be loaded?

`ullage doctor` tries it. A gateway does without what cannot be loaded and says so on its log, where few look.
"""

from dataclasses import replace

from ullage.config import Issue, Loaded
from ullage.errors import UllageError
from ullage.search import load_encoder, load_table

__all__ = ["tried"]


def tried(loaded: Loaded) -> Loaded:
    """With what is wrong with the weights, if anything is."""
    index = loaded.settings.search.index
    if index == "words":
        return loaded
    try:
        (load_encoder if index == "encoder" else load_table)()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with an install, it is to be told
        hint = error.suggestion if isinstance(error, UllageError) else "install Ullage and its extras anew"
        said = f"search by meaning cannot be loaded: {error}"
        issue = Issue(severity="problem", message=said, key="search.index", suggestion=hint)
        return replace(loaded, issues=(*loaded.issues, issue))
    return loaded
