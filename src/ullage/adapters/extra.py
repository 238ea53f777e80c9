"""How is a package loaded that is only there for those who want it?"""

from importlib import import_module
from typing import Any

from ullage.errors import BadConfiguration

__all__ = ["load"]


def load(module: str, extra: str) -> Any:  # noqa: ANN401 - a module whose types are not there where it is not
    """Raises `BadConfiguration` with the command that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadConfiguration(f"`{module}` is not installed", suggestion=f"pip install 'ullage[{extra}]'") from error
