"""The list of Redis keys is whole: one family for each key, no key spelled elsewhere, and the page is current."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from agents import keys
from agents.keys import FAMILIES, KeyFamily, as_markdown, family_of, turn_ids, turn_key, turn_keys
from tests.root import ROOT

NO_KEYS = {("streams/sweep/events.py", "sweep:")}
"""Texts that begin like a key and are none: ids of the events that a sweep publishes."""


def example(family: KeyFamily) -> str:
    return keys.HOLE.sub("x", family.layout)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.layout)
def test_a_key_belongs_to_its_own_family_alone(family: KeyFamily) -> None:
    key = family.key(*keys.HOLE.findall(family.layout))
    assert key == family.layout
    assert [one.layout for one in FAMILIES if one.matches(example(family))] == [family.layout]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.layout)
def test_the_owner_of_a_family_is_a_module_that_uses_its_declaration(family: KeyFamily) -> None:
    (name,) = [name for name, value in vars(keys).items() if value is family]
    source = Path(import_module(family.owner).__file__ or "").read_text()
    functions = {"TURN": "turn_key", "LIVE_MARK": "mark_key"}
    assert name in source or (name in functions and functions[name] in source)


@pytest.mark.parametrize("key", ["", "t2:", "x:1", "t", "dues", "feed:table", "wx:topic:0"])
def test_what_nothing_declares_has_no_family(key: str) -> None:
    assert family_of(key) is None


def test_a_key_needs_all_its_parts() -> None:
    for parts in ((), ("topic",), ("topic", 0, 1)):
        with pytest.raises(ValueError, match="zip"):
            keys.WATERMARK.key(*parts)
    assert keys.WATERMARK.key("topic", 0) == "w2:topic:0"


def test_turn_keys_lead_back_to_their_turns() -> None:
    assert turn_keys(["a", "t2:b"]) == [turn_key("a"), turn_key("t2:b")] == ["t2:a", "t2:t2:b"]
    assert turn_ids(["t2:a", "t2:t2:b", "s2:a", "due"]) == {"a", "t2:b"}


def test_the_documentation_is_the_generated_page() -> None:
    assert (ROOT / "docs/redis-keys.md").read_text() == as_markdown(), "run `make docs`"


def spelled(path: Path) -> Iterator[str]:
    """Constants that a key could be made of: its beginning in any text, or a whole name that is added to a prefix."""
    heads = {family.prefix for family in FAMILIES if family.prefix.endswith(":")}
    whole = {family.layout for family in FAMILIES} - heads
    for node in ast.walk(ast.parse(path.read_text())):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else parts
        for part in [node, *parts]:
            value = part.value if isinstance(part, ast.Constant) else None
            text = value.decode(errors="replace") if isinstance(value, bytes) else value
            if not isinstance(text, str):
                continue
            head = next((head for head in heads if text.startswith(head) and not text.startswith(head + " ")), None)
            if head is not None:
                yield head
            elif part is not node and text in whole:
                yield text


def test_no_other_module_spells_a_key() -> None:
    found = set()
    for room in ("schemas", "evalcore", "agents", "streams", "rampgate"):
        for path in (ROOT / room).rglob("*.py"):
            name = path.relative_to(ROOT).as_posix()
            if name != "agents/keys.py" and not name.startswith("rampgate/local/"):
                found |= {(name, text) for text in spelled(path)}
    assert found == NO_KEYS


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('key = "t2:" + name', "t2:"),
        ('key = f"w2:{topic}:{partition}"', "w2:"),
        ('key = f"{prefix}n:{verdict}"', "n:"),
        ('key = prefix + "due2"', "due2"),
        ('key = head + b"t2:"', "t2:"),
    ],
)
def test_the_search_finds_a_spelled_key(tmp_path: Path, source: str, text: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert text in set(spelled(path))
