"""Values for a prompt's variables, out of a dataset item or a trace (PC5 §5.2 `variables`)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.judges.bindings import Unbound, as_text, bind, names, resolve
from schemas.judges import Variables
from tests.unit.evalcore.registry.built_judges import judge

TRACE = {
    "input": {"messages": [{"content": "hi"}, {"content": "what are points?"}]},
    "output": {"messages": [{"content": [{"text": "draft"}, {"text": "Points are …"}]}]},
}
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True)
VARIABLES = Variables(
    offline={"input": "input", "output": "output", "expected_output": "expected_output"},
    online={"input": "input.messages[-1].content", "output": "output.messages[-1].content[-1].text"},
    playground={"input": "metadata.dataset_item_data.input", "output": "output.output"},
)
ANY = judge()
JUDGE = replace(ANY, rule=ANY.rule.model_copy(update={"variables": VARIABLES}))


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("input.messages[-1].content", "what are points?"),
        ("input.messages[0].content", "hi"),
        ("input.messages[-2].content", "hi"),
        ("output.messages[-1].content[-1].text", "Points are …"),
        ("output.messages[0].content[0].text", "draft"),
        ("input", TRACE["input"]),
    ],
)
def test_a_dotted_path_with_indices_leads_to_its_value(path: str, found: Any) -> None:
    assert resolve(path, TRACE) == found


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("metadata.id", "metadata.id: the item has no 'metadata'"),
        ("input.messages[2].content", "input.messages has 2 items, none at [2]"),
        ("input.messages[-3].content", "input.messages has 2 items, none at [-3]"),
        ("input.messages.content", "input.messages is a list, not an object"),
        ("input[0]", "input is an object, not a list"),
        ("input.messages[0].content[0]", "input.messages[0].content is a text, not a list"),
        ("input.messages[0].content.text", "input.messages[0].content is a text, not an object"),
    ],
)
def test_a_path_that_leads_nowhere_says_how_far_it_led(path: str, said: str) -> None:
    with pytest.raises(Unbound, match="^" + path.replace("[", r"\[").replace("]", r"\]") + ": ") as raised:
        resolve(path, TRACE)
    assert said.removeprefix(f"{path}: ") in str(raised.value)


@pytest.mark.parametrize("value", [None, 4, 2.5, True, object()])
def test_nothing_but_mappings_and_lists_is_followed(value: Any) -> None:
    """Attributes of objects are out of reach: a path is text out of a file."""
    with pytest.raises(Unbound):
        resolve("input.__class__", {"input": value})
    with pytest.raises(Unbound):
        resolve("input[0]", {"input": value})


@st.composite
def places(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """A path, an item in which it leads to a value, and that value."""
    value = draw(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()))
    item, path = value, ""
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            before, after = draw(st.lists(st.none(), max_size=3)), draw(st.lists(st.none(), max_size=3))
            index = draw(st.sampled_from([len(before), -len(after) - 1]))
            item, path = [*before, item, *after], f"[{index}]{'' if path.startswith('[') or not path else '.'}{path}"
        else:
            name = draw(NAMES)
            item, path = {name: item}, f"{name}{'' if path.startswith('[') or not path else '.'}{path}"
    name = draw(NAMES)
    joined = f"{name}{'' if path.startswith('[') or not path else '.'}{path}"
    return joined, {name: item}, value


@given(places())
def test_any_path_leads_to_what_was_put_there(place: tuple[str, Any, Any]) -> None:
    path, item, value = place
    assert resolve(path, item) == value


@given(NAMES, st.recursive(st.none() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(NAMES, of)))
def test_a_path_is_resolved_or_unbound_and_nothing_else(name: str, item: Any) -> None:
    for path in (name, f"{name}[0]", f"{name}.{name}[-1]"):
        with suppress(Unbound):
            resolve(path, item)


def test_a_variable_that_a_context_does_not_bind_is_empty_there() -> None:
    """Production has no reference answer: the same prompt serves both contexts (PC5 AC-9)."""
    assert names(VARIABLES) == ("input", "output", "expected_output")
    assert bind(JUDGE, "online", TRACE) == {
        "input": "what are points?", "output": "Points are …", "expected_output": ""
    }  # fmt: skip
    item = {"input": "a", "output": "b", "expected_output": "c"}
    assert bind(JUDGE, "offline", item) == item
    playground = {"metadata": {"dataset_item_data": {"input": "a"}}, "output": {"output": "b"}}
    assert bind(JUDGE, "playground", playground) == {"input": "a", "output": "b", "expected_output": ""}


def test_a_variable_that_a_context_binds_and_an_item_lacks_is_an_error() -> None:
    """Never an empty text: a judge must not score an answer that it was not shown."""
    with pytest.raises(Unbound, match="expected_output: the item has no 'expected_output'"):
        bind(JUDGE, "offline", {"input": "a", "output": "b"})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        (4, "4"),
        (True, "true"),
        ([{"name": "search", "arguments": {"q": "köln"}}], '[{"name": "search", "arguments": {"q": "köln"}}]'),
    ],
)
def test_what_is_no_text_becomes_json(value: Any, text: str) -> None:
    assert as_text(value) == text
