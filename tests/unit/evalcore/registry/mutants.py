"""Every way a single field of a configuration file can be wrong, made from the file itself and not from a list of known
mistakes: the key gone, misspelt or empty; the value of another type, beside its range, or another word that exists."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

import yaml

from evalcore.yaml.loader import FieldPath, field_name, read_yaml
from schemas.judges import BaselineSource, Classification, Enforcement, Milestone, Operator, ScoreType

WORDS: tuple[type[StrEnum], ...] = (BaselineSource, Classification, Enforcement, Milestone, Operator, ScoreType)
FAR = 10**30
LONG = "x" * 100_001


@dataclass(frozen=True)
class Mutant:
    """One field of `file` changed, or one element of a component."""

    file: str
    field: str
    change: str
    make: Callable[[], bytes]

    @cached_property
    def raw(self) -> bytes:
        return self.make()

    def __str__(self) -> str:
        return f"{self.file}: {self.field}: {self.change}"


class Plain(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
    """No anchors: our reader refuses them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(data: Any) -> bytes:
    return str(yaml.dump(data, Dumper=Plain, sort_keys=False, allow_unicode=True, width=1_000_000)).encode()


def yaml_mutants(file: str, raw: bytes, known: tuple[frozenset[str], ...]) -> Iterator[Mutant]:
    """`known`: groups of names, of judges or of categories; a name is also replaced by each other of its group."""
    document, findings = read_yaml(file, raw)
    assert document is not None
    assert not findings
    head = b"".join(line for line in raw.splitlines(keepends=True) if line.startswith(b"#"))
    for path in paths(document.data):
        parent, key = at(document.data, path[:-1]), path[-1]
        for change, edit in (*around(parent, key), *instead(parent[key], known)):

            def make(path: FieldPath = path, edit: Edit = edit) -> bytes:
                data = copy.deepcopy(document.data)
                edit(at(data, path[:-1]), path[-1])
                return head + dump(data)

            yield Mutant(file, field_name(path), change, make)


def paths(data: Any, above: FieldPath = ()) -> Iterator[FieldPath]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*above, key)
        yield from paths(value, (*above, key))


def at(data: Any, path: FieldPath) -> Any:
    for part in path:
        data = data[part]
    return data


Edit = Callable[[Any, Any], None]


def around(parent: Any, key: Any) -> Iterator[tuple[str, Edit]]:
    """What can happen to the field as a whole."""
    yield "gone", lambda inside, key: inside.pop(key)
    if isinstance(parent, list):
        yield "twice", lambda inside, key: inside.insert(key, copy.deepcopy(inside[key]))
        return
    for name in misspelt(key):
        yield f"named {name!r}", lambda inside, key, name=name: rename(inside, key, name)
    yield "a field more", lambda inside, key: inside.update(anything=1)
    for word in siblings(key):
        if word not in parent:
            yield f"named {word!r}", lambda inside, key, word=word: rename(inside, key, word)


def rename(inside: dict[Any, Any], key: Any, name: str) -> None:
    items = [(name if old == key else old, value) for old, value in inside.items()]
    inside.clear()
    inside.update(items)


def misspelt(name: str) -> list[str]:
    middle = len(name) // 2
    found = [name[:middle] + name[middle + 1 :], name[:middle] + name[middle] + name[middle:], name.upper(), f"{name} "]
    return [one for one in dict.fromkeys(found) if one and one != name]


def siblings(word: str) -> list[str]:
    return [str(other) for kind in WORDS if word in list(kind) for other in kind if other != word]


def instead(value: Any, known: tuple[frozenset[str], ...]) -> Iterator[tuple[str, Edit]]:
    for change, other in others(value, known):
        if other == value and type(other) is type(value):
            continue

        def put(inside: Any, key: Any, other: Any = other) -> None:
            inside[key] = copy.deepcopy(other)

        yield change, put


def others(value: Any, known: tuple[frozenset[str], ...]) -> Iterator[tuple[str, Any]]:
    """What could stand there instead, by a word for the mistake."""
    yield "null", None
    if not isinstance(value, list):
        yield "in a list", [value]
    if not isinstance(value, dict):
        yield "in a mapping", {"value": value}
    if isinstance(value, bool):
        yield from [("flipped", not value), ("as text", str(value).lower()), ("yes", "yes"), ("a number", int(value))]
        yield from [("off the scale", 2), ("half", 0.5)]
    elif isinstance(value, (int, float)):
        yield from _numbers(value)
    elif isinstance(value, date):
        yield from [(f"{days:+} days", value + timedelta(days)) for days in (-3650, -400, -100, -1, 1, 100, 400, 3650)]
        yield from [("no day", "2026-02-30"), ("a word", "soon"), ("a number", 20261120), ("as text", str(value))]
        yield from [("the first day", date.min), ("the last day", date.max)]
        yield "with an hour", f"{value}T00:00:00"
    elif isinstance(value, str):
        yield from _texts(value, known)
    elif isinstance(value, list):
        yield from [("empty", []), ("text", "text"), ("a number", 3), ("backwards", value[::-1])]
        groups = [group for group in known if not value or group & {*map(str, value)}]
        yield from [(f"and {name}", [*value, name]) for group in groups for name in sorted(group - {*map(str, value)})]
        yield from [
            ("and a number", [*value, 3]),
            ("and nothing", [*value, None]),
            ("and a typo", [*value, "anythign"]),
        ]
    elif isinstance(value, dict):
        yield from [("empty", {}), ("text", "text"), ("a number", 3), ("true", True), ("a list", [])]


def _numbers(value: float) -> Iterator[tuple[str, Any]]:
    yield from [("as text", str(value)), ("true", True), ("false", False), ("a word", "high"), ("negative", -value - 1)]
    yield from [("nan", float("nan")), ("infinite", float("inf")), ("huge", FAR), ("zero", 0), ("minus zero", -0.0)]
    for change in (+1, -1, +0.5, -0.5, +0.01, -0.01):
        yield f"{change:+}", round(value + change, 6)
    for factor in (2, 10, 100, 1000, 0.5, 0.1, 0.01):
        yield f"times {factor}", int(value * factor) if isinstance(value, int) and factor > 1 else value * factor


def _texts(value: str, known: tuple[frozenset[str], ...]) -> Iterator[tuple[str, Any]]:
    yield from [("no text", ""), ("blank", " "), ("a number", 5), ("true", True), ("long", LONG), ("a day", date.min)]
    yield from [(f"spelt {name!r}"[:60], name) for name in misspelt(value)]
    yield from [(word, word) for word in siblings(value)]
    yield from [(name, name) for group in known if value in group for name in sorted(group - {value})]
    yield from [
        ("up and out", "../" + value),
        ("a reserved word", "user_signal_" + value),
        ("hidden", value + "\u202e"),
    ]
    for used in sorted(set(re.findall(r"\{\{\w+\}\}", value))):
        yield from [(f"without {used}", value.replace(used, "")), (f"odd {used}", value.replace(used, "{{anything}}"))]


def xml_mutants(file: str, raw: bytes, known: tuple[frozenset[str], ...]) -> Iterator[Mutant]:
    """Attributes and elements of a prompt component; what stands inside <prompt> is text for an agent."""
    count = sum(1 for _ in ET.fromstring(raw).iter())  # noqa: S314  # our own file
    for number in range(count):
        for change in _xml_changes(raw, number, known):
            tree = ET.fromstring(raw)  # noqa: S314
            name, words = change(tree, list(tree.iter())[number])
            yield Mutant(file, name, words, partial(ET.tostring, tree))


XmlEdit = Callable[[ET.Element, ET.Element], tuple[str, str]]


def _xml_changes(raw: bytes, number: int, known: tuple[frozenset[str], ...]) -> Iterator[XmlEdit]:
    tree = ET.fromstring(raw)  # noqa: S314
    element = list(tree.iter())[number]
    above = {child: parent for parent in tree.iter() for child in parent}
    way = [element]
    while way[0] in above:
        way.insert(0, above[way[0]])
    if any(one.tag == "prompt" for one in way[:-1]):
        return
    shown = "/".join(one.tag for one in way)

    def parent(tree: ET.Element, element: ET.Element) -> ET.Element:
        return next(one for one in tree.iter() if element in list(one))

    if element is not tree:

        def gone(tree: ET.Element, element: ET.Element) -> tuple[str, str]:
            parent(tree, element).remove(element)
            return shown, "gone"

        def twice(tree: ET.Element, element: ET.Element) -> tuple[str, str]:
            parent(tree, element).append(copy.deepcopy(element))
            return shown, "twice"

        yield from (gone, twice)
    for tag in misspelt(element.tag)[:3]:

        def called(tree: ET.Element, element: ET.Element, tag: str = tag) -> tuple[str, str]:
            element.tag = tag
            return shown, f"called {tag}"

        yield called
    for text in ("", " ", "words"):

        def says(tree: ET.Element, element: ET.Element, text: str = text) -> tuple[str, str]:
            element.text = text
            return shown, f"says {text!r}"

        yield says
    for name, value in element.attrib.items():
        if name.startswith("{"):
            continue

        def without(tree: ET.Element, element: ET.Element, name: str = name) -> tuple[str, str]:
            del element.attrib[name]
            return f"{shown}@{name}", "gone"

        def misnamed(tree: ET.Element, element: ET.Element, name: str = name) -> tuple[str, str]:
            element.attrib[misspelt(name)[0]] = element.attrib.pop(name)
            return f"{shown}@{name}", f"named {misspelt(name)[0]}"

        yield from (without, misnamed)
        for change, other in _texts(value, known):
            if isinstance(other, str):

                def put(
                    tree: ET.Element, element: ET.Element, name: str = name, other: str = other, change: str = change
                ) -> tuple[str, str]:
                    element.attrib[name] = other
                    return f"{shown}@{name}", change

                yield put
