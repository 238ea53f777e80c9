"""How does a table of `ullage.toml` become a provider of models?

Variables in its address and headers are replaced. A key that is written out is refused: it stands in a
variable, never in a file. Nobody is reached here.
"""

import re
from collections.abc import Mapping
from typing import Any, cast

from .delegate_keys import PROVIDER, TIMING
from .delegating import BUILT_IN, ProviderSettings, Timing, WireKind
from .entry import unresolved
from .findings import Findings, Path, Table
from .page import dotted
from .variables import Expanded, variables_in

__all__ = ["read_provider"]

_KEYS = ("key", "api_key", "apikey", "token", "secret", "password")
"""What people would call a key, if it might stand here."""
_SECRET_HEADER = re.compile(r"authorization|cookie|.*(?:key|token|secret).*", re.IGNORECASE)
_SECRET_ADDRESS = re.compile(r"://[^/@\s]+@|[?&](?:api[_-]?)?key=", re.IGNORECASE)
_KINDS: Mapping[str, WireKind] = {name: one.kind for name, one in BUILT_IN.items()}
_ADDRESSES = {
    **{one.kind: one.base_url for one in BUILT_IN.values()},
    "openai-chat": BUILT_IN["openai"].base_url,
}
_HINT = 'set a variable, and name it: key_env = "MY_KEY"'


def read_provider(findings: Findings, path: Path, table: Table) -> ProviderSettings | None:
    """The provider; None where it is left out, with the reason among the findings."""
    before = len(findings.issues)
    values = findings.keys({name: one for name, one in table.items() if name not in _KEYS}, path, PROVIDER)
    _refuse_keys(findings, path, table)
    kind = cast("WireKind", values.get("kind", _KINDS.get(path[-1], "compatible")))
    written = values.get("base_url", _ADDRESSES.get(kind))
    if written is None and "base_url" not in table and len(findings.issues) == before:
        findings.error(f"provider `{path[-1]}` has no `base_url`", path, "write where it is reached")
    if len(findings.issues) > before:
        return None
    return _provider(findings, path, {**values, "kind": kind, "base_url": cast("str", written)})


def _refuse_keys(findings: Findings, path: Path, table: Table) -> None:
    for name in table:
        if name in _KEYS:
            findings.error(f"a key does not belong into a file, as `{dotted((*path, name))}` is", (*path, name), _HINT)
    headers = table.get("headers")
    for name, value in cast("Mapping[str, object]", headers if isinstance(headers, dict) else {}).items():
        if _SECRET_HEADER.fullmatch(name) and not variables_in(str(value)):
            said = f"header `{name}` of provider `{path[-1]}` may be a key, which does not belong into a file"
            findings.error(said, (*path, "headers"), "write ${VARIABLE} in its place, and set that variable")
    if _SECRET_ADDRESS.search(re.sub(r"\$\{[^}]*\}", "", str(table.get("base_url", "")))):
        findings.error(f"the address of provider `{path[-1]}` holds a secret", (*path, "base_url"), _HINT)


def _provider(findings: Findings, path: Path, values: Mapping[str, Any]) -> ProviderSettings | None:
    found = list[Expanded]()
    written: Mapping[str, str] = {"": values["base_url"], **values.get("headers", {})}
    expanded = {name: _expanded(findings, text, found) for name, text in written.items()}
    missing = unresolved(findings.page, f"provider `{path[-1]}`", path, found)
    findings.issues.extend(missing)
    if missing:
        return None
    built_in = BUILT_IN.get(path[-1])
    key_env = values.get("key_env", None if built_in is None else built_in.key_env)
    return ProviderSettings(
        name=path[-1],
        kind=values["kind"],
        base_url=expanded.pop(""),
        key_env=key_env,
        headers=expanded,
        timing=Timing(**{name: values[name] for name in TIMING if name in values}),
        host=values.get("host"),
        variables=frozenset(one for text in written.values() for one in variables_in(text))
        | ({key_env} if key_env else set[str]()),
        came_from=f"{findings.page.file} [{dotted(path)}]",
    )


def _expanded(findings: Findings, text: str, found: list[Expanded]) -> str:
    found.append(findings.page.expand(text))
    return found[-1].text
