"""Whether an agent can go on from a digest of service dialogues with entities and result formats of many kinds.

Part of `make bench-context`; alone, `python bench/context_dialogues.py`. Every dialogue is generated: a customer goes
through several lists of hotels, claims, tickets, parcels, patients or rentals, picks one entity of each, and orders at
the end that all be done. The results are JSON in several shapes, lines, YAML, tables, comma-separated values, elements,
sentences, pages, and lists with headings. Each dialogue runs through windows of a share of its weight, without a model
and with one that says one sentence; looked at is what the calls at the end need after the last compaction: each value,
with the values that belong to it (`context_relations`), and the identifiers (`context_continuity`).
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import context_relations
from context_alone import run_alone
from context_continuity import DEFINITIONS, SENTENCE, Kept, Way, reading_of, rounded, stands_in, texts_of
from context_others import First
from context_traces import MODELS, Point, Trace

from ullage.context.token_weights import Scale
from ullage.messages import Format, Message, Text, ToolCall, ToolResult
from ullage.models import shipped
from ullage.tokens import Meter, drain

RELATED, IDENTIFIERS = 0.90, 0.95
SEED = 5
SHARES = (1.3, 1.1, 0.8)
"""Windows, as shares of what a dialogue weighs."""
ENTITIES, LISTED = 7, 5
"""Entities of a dialogue, and those listed to pick one from."""
Entity = dict[str, Any]


class Generator:
    """Entities of services that no recorded session has."""

    NAMES = (
        "Mara Okafor",
        "Jonas Lindqvist",
        "Priya Raman",
        "Tomás Ibarra",
        "Aiko Tanabe",
        "Lena Vogt",
        "Samuel Adeyemi",
        "Chloé Marchand",
        "Viktor Petrov",
        "Noor Haddad",
    )
    CITIES = ("Lisbon", "Porto", "Ghent", "Malmö", "Turin", "Graz", "Kraków", "Split", "Bergen", "Cork")

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def code(self, prefix: str, digits: int = 5) -> str:
        return prefix + "".join(self.random.choices("0123456789", k=digits))

    def money(self, low: int, high: int) -> float:
        return round(self.random.uniform(low, high), 2)

    def day(self) -> str:
        return f"2026-{self.random.randint(1, 12):02}-{self.random.randint(1, 28):02}"

    def hotel(self) -> Entity:
        pick = self.random.choice
        return {
            "hotel_id": self.code("HT-"),
            "name": f"{pick(('Grand', 'Casa', 'Villa', 'Park', 'Royal'))} {pick(self.CITIES)}",
            "city": pick(self.CITIES),
            "price_per_night": self.money(60, 400),
            "rooms": [
                {"room_code": self.code("R", 3), "type": pick(("double", "twin", "suite")), "rate": self.money(60, 500)}
                for _ in range(3)
            ],
            "amenities": self.random.sample(["wifi", "pool", "parking", "gym", "breakfast"], 3),
            "description": "A quiet place near the centre with a garden and a view of the river that guests praise.",
        }

    def claim(self) -> Entity:
        pick = self.random.choice
        return {
            "claim_no": self.code("CLM", 7),
            "policy_number": f"POL-{self.random.randint(100, 999)}-{self.random.randint(1000, 9999)}",
            "claimant": {"name": pick(self.NAMES), "customer_ref": self.code("C", 6)},
            "incident_date": self.day(),
            "type": pick(("water damage", "collision", "theft")),
            "amount_claimed": self.money(200, 20_000),
            "status": pick(("open", "under review", "approved")),
            "documents": [{"doc_id": self.code("D", 6), "received": self.day()} for _ in range(2)],
            "notes": "The claimant called twice and was told that an expert will come within ten working days.",
        }

    def ticket(self) -> Entity:
        pick = self.random.choice
        return {
            "ticket": self.code("SUP-", 6),
            "requester": f"{pick(self.NAMES).split()[0].lower()}@{pick(('acme', 'globex', 'initech'))}.example",
            "subject": pick(("Cannot log in", "Invoice is wrong", "Export fails")),
            "assignee_id": self.code("agt_", 4),
            "order_ref": self.code("SO", 6),
            "created_at": f"{self.day()}T09:12:00Z",
            "body": "Since the update of last week the export ends with an error, which blocks our month end closing.",
        }

    def parcel(self) -> Entity:
        pick = self.random.choice
        return {
            "tracking_number": f"1Z{self.random.randrange(16**12):012X}",
            "carrier": pick(("DHL", "UPS", "PostNord", "GLS")),
            "order_id": self.code("ORD-", 6),
            "recipient": pick(self.NAMES),
            "address": {"postcode": str(self.random.randint(10_000, 99_999)), "city": pick(self.CITIES)},
            "weight_kg": self.money(1, 30),
            "events": [{"at": self.day(), "code": pick(("PU", "AR", "DP", "OD"))} for _ in range(3)],
        }

    def patient(self) -> Entity:
        pick = self.random.choice
        return {
            "mrn": self.code("M", 8),
            "patient": pick(self.NAMES),
            "appointment": {"slot_id": self.code("SL", 6), "start": f"{self.day()} 10:30"},
            "insurer": pick(("Aurora", "Medica")),
            "copay": self.money(5, 60),
        }

    def rental(self) -> Entity:
        pick = self.random.choice
        return {
            "vin": "".join(self.random.choices("ABCDEFGHJKLMNPRSTUVWXYZ0123456789", k=17)),
            "model": pick(("Corsa", "Clio", "Octavia")),
            "rental_agreement": self.code("RA", 7),
            "renter": pick(self.NAMES),
            "daily_rate": self.money(25, 140),
            "return_due": self.day(),
        }


@dataclass(frozen=True, slots=True)
class Service:
    make: Callable[[Generator], Entity]
    words: Callable[[Entity], str]
    """What a customer calls an entity."""
    order: Callable[[Entity], dict[str, object]]
    """Arguments of the call at the end."""


SERVICES: Mapping[str, Service] = {
    "hotels": Service(
        Generator.hotel,
        lambda one: one["name"],
        lambda one: {"hotel_id": one["hotel_id"], **{key: one["rooms"][0][key] for key in ("room_code", "rate")}},
    ),
    "claims": Service(
        Generator.claim,
        lambda one: f"the {one['type']} claim of {one['claimant']['name']}",
        lambda one: {key: one[key] for key in ("claim_no", "policy_number", "amount_claimed")},
    ),
    "tickets": Service(
        Generator.ticket,
        lambda one: f"“{one['subject']}” from {one['requester']}",
        lambda one: {key: one[key] for key in ("ticket", "assignee_id", "order_ref")},
    ),
    "parcels": Service(
        Generator.parcel,
        lambda one: f"the parcel for {one['recipient']}",
        lambda one: {
            "tracking_number": one["tracking_number"],
            "order_id": one["order_id"],
            "postcode": one["address"]["postcode"],
        },
    ),
    "patients": Service(
        Generator.patient,
        lambda one: f"the appointment of {one['patient']}",
        lambda one: {"mrn": one["mrn"], "slot_id": one["appointment"]["slot_id"], "copay": one["copay"]},
    ),
    "rentals": Service(
        Generator.rental,
        lambda one: f"the {one['model']} of {one['renter']}",
        lambda one: {key: one[key] for key in ("rental_agreement", "vin", "daily_rate")},
    ),
}


def flat(value: Entity, before: str = "") -> Iterator[tuple[str, object]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from flat(inner, f"{before}{key}.")
        elif isinstance(inner, list):
            for at, one in enumerate(inner):
                if isinstance(one, dict):
                    yield from flat(one, f"{before}{key}[{at}].")
                else:
                    yield f"{before}{key}[{at}]", one
        else:
            yield before + key, inner


def yaml(value: Any, depth: int = 0) -> str:  # noqa: ANN401
    margin, lines = "  " * depth, list[str]()
    if isinstance(value, dict):
        for key, inner in value.items():
            is_plain = not isinstance(inner, dict | list)
            lines += [f"{margin}{key}: {inner}"] if is_plain else [f"{margin}{key}:", yaml(inner, depth + 1)]
    else:
        for one in value:
            text = yaml(one, depth + 1).lstrip() if isinstance(one, dict) else str(one)
            lines.append(f"{margin}- {text}")
    return "\n".join(lines)


def table(entities: Sequence[Entity], between: str, edge: str) -> str:
    rows = [dict(flat(one)) for one in entities]
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = [keys, *([str(row.get(key, "")) for key in keys] for row in rows)]
    lines = [
        edge + between.join(f'"{cell}"' if not edge and between in cell else cell for cell in row) + edge
        for row in cells
    ]
    return "\n".join([lines[0], *(["|---" * len(keys) + "|"] if edge else []), *lines[1:]])


def elements(entities: Sequence[Entity]) -> str:
    def tag(key: str, value: object) -> str:
        name = key.replace("[", "_").replace("]", "").replace(".", "-")
        return f"<{name}>{value}</{name}>"

    items = ("".join(tag(key, value) for key, value in flat(one)) for one in entities)
    return "<items>\n" + "\n".join(f"  <item>{item}</item>" for item in items) + "\n</items>"


def sentences(entities: Sequence[Entity]) -> str:
    lines = list[str]()
    for number, one in enumerate(entities, 1):
        said = (f"{key.split('.')[-1].replace('_', ' ')} {value}" for key, value in flat(one))
        lines.append(f"{number}. {', '.join(said)}.")
    return "\n".join(lines)


def cards(entities: Sequence[Entity], item: str, title: str, between: str) -> str:
    """Each entity under a title, with its values as items."""
    made = list[str]()
    for number, one in enumerate(entities, 1):
        values = list(flat(one))
        lines = [title.format(number=number, name=values[0][1]), *(item.format(key, value) for key, value in values)]
        made.append("\n".join(line for line in lines if line))
    return between.join(made)


def page(entities: Sequence[Entity]) -> str:
    rows = [dict(flat(one)) for one in entities]
    head = "".join(f"<th>{key}</th>" for key in rows[0])
    body = "\n".join("<tr>" + "".join(f"<td>{row.get(key, '')}</td>" for key in rows[0]) + "</tr>" for row in rows)
    return (
        f"<html><body><h2>Results</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></body></html>"
    )


def nested_list(value: Any, depth: int = 0) -> str:  # noqa: ANN401
    margin = "  " * depth
    if isinstance(value, dict):
        named = ((key, inner, isinstance(inner, dict | list)) for key, inner in value.items())
        return "\n".join(
            f"{margin}* {key}:\n{nested_list(inner, depth + 1)}" if is_more else f"{margin}* {key}: {inner}"
            for key, inner, is_more in named
        )
    return "\n".join(
        f"{margin}* entry\n{nested_list(one, depth + 1)}" if isinstance(one, dict) else f"{margin}* {one}"
        for one in value
    )


def pairs(entities: Sequence[Entity]) -> str:
    quoted = lambda value: f'"{value}"' if " " in str(value) else value  # noqa: E731
    return "\n".join(" ".join(f"{key}={quoted(value)}" for key, value in flat(one)) for one in entities)


def columns(entities: Sequence[Entity]) -> str:
    rows = [dict(flat(one)) for one in entities]
    return json.dumps({"columns": list(rows[0]), "rows": [[row.get(key) for key in rows[0]] for row in rows]})


RESULTS: Mapping[str, Callable[[Sequence[Entity]], str]] = {
    "JSON": lambda those: json.dumps({"results": those, "count": len(those)}),
    "indented JSON": lambda those: json.dumps(those, indent=2, ensure_ascii=False),
    "JSON by key": lambda those: json.dumps(
        {
            one[key]: {name: value for name, value in one.items() if name != key}
            for one in those
            for key in [next(iter(one))]
        }
    ),
    "JSON lines": lambda those: "\n".join(json.dumps(one) for one in those),
    "JSON in content": lambda those: json.dumps({"content": [{"type": "text", "text": json.dumps(those)}]}),
    "lines": lambda those: "\n\n".join("\n".join(f"{key}: {value}" for key, value in flat(one)) for one in those),
    "YAML": yaml,
    "table": lambda those: table(those, " | ", "|"),
    "commas": lambda those: table(those, ",", ""),
    "elements": elements,
    "sentences": sentences,
    "page": page,
    "cards of a page": lambda those: cards(those, "<li><b>{}</b>: {}</li>", "<h3>{number}. {name}</h3><ul>", "</ul>\n"),
    "headings": lambda those: cards(those, "- **{}**: {}", "### {number}. {name}", "\n\n"),
    "nested list": lambda those: f"Found:\n{nested_list(those)}",
    "sections": lambda those: cards(those, '{} = "{}"', "[[item]]", "\n\n"),
    "dots": lambda those: cards(those, "{} ......... {}", "", "\n-----\n"),
    "pairs": pairs,
    "names and rows": columns,
    "nodes": lambda those: json.dumps({"data": {"found": {"edges": [{"cursor": "c", "node": one} for one in those]}}}),
    "labelled JSON": lambda those: "\n".join(f"Item {at}:\n{json.dumps(one)}" for at, one in enumerate(those, 1)),
}


def dialogue(make: Generator, service: Service, written: Callable[[Sequence[Entity]], str]) -> Iterator[Message]:
    picked, number = list[Entity](), 0

    def user(text: str) -> Message:
        return Message(role="user", parts=(Text(text),))

    def assistant(text: str) -> Message:
        return Message(role="assistant", parts=(Text(text),))

    def called(name: str, arguments: dict[str, object], answer: str) -> tuple[Message, Message]:
        nonlocal number
        number += 1
        call = ToolCall(name=name, arguments=json.dumps(arguments), id=f"call_{number}")
        result = ToolResult(parts=(Text(answer),), call_id=call.id, name=name)
        return Message(role="assistant", parts=(call,)), Message(role="tool", parts=(result,))

    customer = make.code("CU")
    yield user(f"Hi, this is {make.random.choice(make.NAMES)}, customer {customer}. I have several things to sort out.")
    for page in range(1, ENTITIES + 1):
        listed = [service.make(make) for _ in range(LISTED)]
        one = make.random.choice(listed)
        key = next(iter(one))
        yield from called("list_all", {"customer": customer, "page": page}, written(listed))
        yield assistant(f"I found {LISTED}. Which one do you mean?")
        yield user(f"I mean {service.words(one)}. Please keep it in mind, I decide at the end.")
        yield from called("get_details", {key: one[key]}, written([one]))
        yield assistant(f"Noted: {service.words(one)}, {key.replace('_', ' ')} {one[key]}.")
        yield user(make.random.choice(("Thanks. And the next one?", "Good, go on.", "Then there is another one.")))
        picked.append(one)
    yield assistant("Shall I go ahead with all of them?")
    yield user("Yes, do all of them now.")
    for one in picked:
        yield from called("do_it", service.order(one), json.dumps({"ok": True}))
    yield assistant("All done.")


@dataclass(slots=True)
class Figures:
    related: dict[tuple[str, str], Kept] = field(default_factory=dict[tuple[str, str], Kept])
    """Needed arguments that are there with those that belong to them, by kind of dialogue or result and what told."""
    identifiers: dict[tuple[str, str], Kept] = field(default_factory=dict[tuple[str, str], Kept])

    def missed(self) -> list[str]:
        found = list[str]()
        for floor, kept_by, what in (
            (RELATED, self.related, "arguments are there with their partners"),
            (IDENTIFIERS, self.identifiers, "identifiers are there"),
        ):
            for (kind, told), kept in kept_by.items():
                if (share := kept.share) is None or share < floor:
                    shown = "none was needed" if share is None else f"{share:.1%}"
                    found.append(f"{kind}, {told}: {shown} of {what}, under {floor:.0%}")
        return found

    def to_json(self) -> dict[str, object]:
        return {
            f"{kind}, {told}": [rounded(kept.share), rounded(self.identifiers[kind, told].share)]
            for (kind, told), kept in self.related.items()
        }


async def look(trace: Trace, scale: Scale, kinds: Sequence[str], figures: Figures) -> None:
    chunks = trace.chunks(scale.format)
    entries = drain(scale.entries([native for chunk in chunks for native in chunk]))
    messages = [entry.message for entry in entries]
    reading, weight = reading_of(messages), sum(entry.weight.tokens for entry in entries)
    for share in SHARES:
        for told, summarizer in (("a digest", None), ("one sentence", SENTENCE)):
            way = Way(scale=scale, window=int(share * weight), chunks=chunks, summarizer=summarizer)
            if not (points := await way.points()):
                continue
            step, left = points[-1]
            known = dict(zip((id(entry.native) for entry in entries), messages, strict=True))
            remaining = [known.get(id(entry.native), entry.message) for entry in left]
            there = {id(message) for message in remaining}
            gone = {place for place, message in enumerate(messages[:step]) if id(message) not in there}
            whole = Trace(family=trace.family, name=trace.name, system="", messages=tuple(messages))
            point = Point(trace=whole, step=step, window=way.window)
            first = First(point=point, scale=scale, chunks=chunks, reading=reading)
            units = context_relations.units(remaining, messages)
            text = "\n".join(one for message in remaining for part in message.parts for one in texts_of(part))
            for kind in kinds:
                kept = figures.related.setdefault((kind, told), Kept())
                for need in context_relations.needs(first, gone):
                    kept.needed += 1
                    kept.kept += all(
                        any(need.value in unit and partner in unit for unit in units)
                        for partner in need.partners or (need.value,)
                    )
                words = figures.identifiers.setdefault((kind, told), Kept())
                for name in DEFINITIONS:
                    needed = list(reading.needed(name, step, gone))
                    words.needed += len(needed)
                    words.kept += sum(stands_in(word, text) for word in needed)


def run(data: Path) -> Figures:
    del data
    return anyio.run(_run)


async def _run() -> Figures:
    figures, make = Figures(), Generator(SEED)
    scale = Scale(Meter(shipped()), MODELS[Format.OPENAI_CHAT], Format.OPENAI_CHAT)
    for service_name, service in SERVICES.items():
        for result_name, written in RESULTS.items():
            messages = tuple(dialogue(make, service, written))
            trace = Trace(family=service_name, name=f"{service_name}, {result_name}", system="", messages=messages)
            await look(trace, scale, (service_name, f"as {result_name}"), figures)
    return figures


def report(figures: Figures) -> None:
    print(f"{'dialogues':24}{'':14}{'related':>18}{'identifiers':>18}")
    for (kind, told), kept in figures.related.items():
        print(f"{kind:24}{told:14}{kept!s:>18}{figures.identifiers[kind, told]!s:>18}")


if __name__ == "__main__":
    sys.exit(run_alone(run, report))
