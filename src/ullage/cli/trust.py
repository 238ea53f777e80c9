"""Review and approve project files, and changed tool definitions.

Without arguments, list what waits for approval. With the path of an ullage.toml, another program's MCP file or a folder
with models.json and policies.json, approve its current content and that of every file it includes. With the name of a
server, accept the changed definitions of its tools.
"""

import argparse
import os
import shlex
from collections.abc import Collection, Iterator
from pathlib import Path

from ullage.app.open_store import DefinitionReport, audit_file, open_definitions, report_all
from ullage.app.scan_servers import approval_of
from ullage.clients.configs import current_surroundings, read_clients
from ullage.config import Approvals, PendingFile, Places, review
from ullage.config.project_trust import identity_of
from ullage.errors import BadConfiguration, InvalidArguments, UnknownResource, UnreadableFile
from ullage.tool import Json

from .load_settings import (
    add_flags,
    approve,
    can_be_asked,
    choose_servers,
    examine_settings,
    fill_start_cache,
    pending_lines,
    review_settings,
)
from .output import bold, dim, emit, emit_json, plain, say, short_path
from .scan import review_command
from .tools import accept_definitions, report_lines

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        nargs="?",
        metavar="PATH|SERVER",
        help="project file to approve, or server whose changed definitions to accept",
    )
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="with SERVER: accept this tool only")
    parser.add_argument(
        "--hash",
        metavar="SHA256",
        help="approve without a terminal, if the content has this digest (`ullage trust` prints it)",
    )
    parser.add_argument("--show", action="store_true", help="only show what would be approved or accepted")
    parser.add_argument("--forget", metavar="PATH", type=Path, help="revoke the approval of this file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.forget is not None:
        approvals = Approvals(Places.of_user().trust)
        path = identity_of(Path.cwd() / arguments.forget.expanduser())
        if not approvals.forget(path):
            raise UnknownResource(
                f"`{path}` is not approved",
                suggestion="`ullage trust` lists approved files",
                options=tuple(str(one) for one in approvals.all()),
            )
        audit_file(examine_settings(arguments).settings.store, "revocation", str(path))
        fill_start_cache(arguments)
        if arguments.json:
            emit_json({"forgotten": str(path)})
        else:
            emit(f"{plain(str(path))} is no longer approved. A running gateway stops what it started for it.")
        return 0
    if arguments.target is None:
        if arguments.hash is not None:
            raise InvalidArguments("--hash goes with a path", suggestion="ullage trust PATH --hash SHA256")
        return _list(arguments)
    if arguments.tool is not None or not _is_path(arguments):
        return _accept(arguments)
    return _approve(arguments, Path(arguments.target))


def _is_path(arguments: argparse.Namespace) -> bool:
    """Return whether the target is a path: with --hash, by its form, or because such a file exists."""
    target = arguments.target
    is_written_so = any(one in target for one in ("/", "\\")) or target.startswith((".", "~"))
    is_written_so = is_written_so or target.endswith((".toml", ".json"))
    if arguments.hash is not None or is_written_so:
        return True
    is_server = any(one.name == target for one in examine_settings(arguments).settings.servers)
    if is_server and Path(target).exists():
        raise InvalidArguments(
            f"`{target}` is both a server and a file",
            suggestion=f"write ./{target} for the file, or rename one of them",
        )
    return Path(target).exists()


def _accept(arguments: argparse.Namespace) -> int:
    """Accept the changed definitions of a server, or of one of its tools."""
    loaded = examine_settings(arguments)
    if loaded.errors:
        raise BadConfiguration("; ".join(issue.sentence() for issue in loaded.errors))
    if arguments.tool is None and all(one.name != arguments.target for one in loaded.settings.servers):
        raise UnknownResource(
            f"`{arguments.target}` is neither a file nor a configured server",
            suggestion="`ullage trust` lists what waits for approval",
            options=tuple(one.name for one in loaded.settings.servers),
        )
    (server,) = choose_servers(loaded, arguments.target)
    status = 0
    if arguments.json:
        with open_definitions(loaded.settings, server) as definitions:
            report = DefinitionReport(
                withheld=definitions.withheld(arguments.tool), new=() if arguments.tool else definitions.new()
            )
            accepted = () if arguments.show else definitions.accept(report.withheld)
            emit_json({**report.to_json(), "accepted": [change.name for change in accepted]})
    else:
        status = accept_definitions(loaded.settings, server, arguments.tool, only_show=arguments.show)
    if not arguments.show:
        fill_start_cache(arguments)
    return status


def _list(arguments: argparse.Namespace) -> int:
    loaded = review_settings(arguments)
    approved = Approvals(Places.of_user().trust).all()
    pending = (*loaded.pending, *_pending_of_programs({one.path for one in loaded.pending}))
    reports = report_all(loaded.settings) if loaded.settings.servers else {}
    if arguments.json:
        emit_json(
            {
                "pending": [_pending_json(one) for one in pending],
                "approved": [
                    {"path": str(path), "sha256": approvals[0].digest, "approved": approvals[0].approved}
                    for path, approvals in approved.items()
                ],
                "definitions": {name: report.to_json() for name, report in reports.items()},
            }
        )
        return 0
    for one in pending:
        for line in pending_lines(one):
            emit(line)
        if not one.faults:
            # A person can be asked on a terminal; elsewhere the digest takes the place of the answer.
            given = "" if can_be_asked() else f" --hash {one.unit.digest}"
            emit(f"  approve   {review_command(str(one.path))}{given}")
        emit()
    for name, report in reports.items():
        for line in (bold(plain(name)), *report_lines(name, report), ""):
            emit(line)
    if not pending and not reports:
        emit("Nothing waits for your approval here.")
    waiting = {one.path for one in pending}
    for path, approvals in approved.items():
        if path not in waiting:
            emit(dim(f"approved {approvals[0].approved[:10]}  {short_path(str(path))}"))
    return 0


def _pending_of_programs(known: Collection[Path]) -> Iterator[PendingFile]:
    """Yield files in which other programs configure servers for this folder, where they are not approved. A file that
    cannot be reviewed is reported."""
    found = dict[Path, None]()
    for config in read_clients(current_surroundings()):
        is_approved = approval_of(config, Places.of_user())
        for server in config.servers:
            if server.scope == "project" and not server.disabled and not is_approved(server.file):
                found[identity_of(Path(server.file))] = None
    for path in found:
        if path not in known:
            try:
                yield review(path, os.environ, Path.cwd())
            except UnreadableFile as error:
                say(f"ullage: {error.message}")


def _approve(arguments: argparse.Namespace, path: Path) -> int:
    found = review(path.expanduser(), os.environ, Path.cwd())
    if found.path == identity_of(Places.of_user().user_file):
        raise InvalidArguments(f"`{path}` is your own settings file and needs no approval")
    if found.faults:
        raise BadConfiguration(
            f"`{path}` cannot be approved: {'; '.join(found.faults)}", suggestion="fix the file, then approve it"
        )
    if arguments.show:
        for line in pending_lines(found):
            emit(line)
        return 0
    if arguments.hash is not None and arguments.hash.strip().lower() != found.unit.digest:
        raise InvalidArguments(
            f"`{path}` does not have the digest given with --hash: nothing was approved",
            suggestion="review the file with `ullage trust`, which prints its digest",
        )
    if arguments.hash is None and not can_be_asked():
        raise InvalidArguments(
            "approving a file needs a terminal, or the digest of the content that you reviewed",
            suggestion="ullage trust PATH --hash SHA256",
        )
    if not arguments.json:
        for line in pending_lines(found):
            emit(line)
    approve(found, examine_settings(arguments).settings.store)
    fill_start_cache(arguments)
    if arguments.json:
        emit_json({"approved": _pending_json(found)})
    else:
        emit("Approved. It is pending again when this content changes.")
        emit(f"  revoke    ullage trust --forget {plain(shlex.quote(str(found.path)))}")
    return 0


def _pending_json(one: PendingFile) -> dict[str, Json]:
    return {
        "path": str(one.path),
        "sha256": one.unit.digest,
        "effects": list(one.effects),
        "errors": list(one.faults),
        "approved_before": None if one.before is None else one.before.approved,
        "effects_before": None if one.before is None else list(one.before.effects),
    }
