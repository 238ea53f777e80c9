"""Names of a package that are imported on first use.

A package's `__init__` is its public face and names everything. A program that has to answer at once cannot import all
of that for one name, so the larger packages import a module when one of its names is used:

    if TYPE_CHECKING:
        from .table import Table
    else:
        __getattr__ = import_on_use(__name__, {"Table": "table"})

A name that is also the name of a module of the package must be imported at once instead: Python sets that attribute to
the module itself as soon as anything imports it.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["import_on_use"]


def import_on_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package.

    Args:
        package: The package's `__name__`.
        modules: By name, the package's module that defines it.
    """

    def get_attribute(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)  # the next use is an ordinary look-up
        return value

    return get_attribute
