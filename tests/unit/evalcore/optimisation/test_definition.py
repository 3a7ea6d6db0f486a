"""PF-9 FR-9, §5.7: a fork is the same Agent Definition with another prompt; the hash of its id says whether an item is
held out; a fork that copies an item is found by runs of words."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalcore.manifest.discovery import components
from evalcore.optimisation.copying import RUN, Items, texts_of, words
from evalcore.optimisation.definition import BadDefinition, as_yaml, prompt_hash, read_definition
from evalcore.optimisation.split import is_held_out, split

CHAT = b"""agent_id: chat
agent_version: 3
prompt: |
  You help shoppers of {shop}.
  Be kind.
tools: [{name: search, version: 2}]
tuning: {temperature: 0.3}
another_field_of_pc1: [1, 2]
"""
GREETING = b"""<?xml version="1.0" encoding="UTF-8"?>
<component id="greeting" version="1.4">
  <capability category="greeting" archetype="conversation"><judges><judge id="ux_quality"/></judges></capability>
  <prompt>
    <role>You greet a shopper.</role>
    <rule a="1 &lt; 2">Greet &amp; be brief.</rule>
  </prompt>
</component>
"""


def test_a_fork_has_another_prompt_and_all_else_as_it_was() -> None:
    fork = "You help.\n  indented: 'yes' # no comment\n{shop}\n"
    made = yaml.safe_load(read_definition("chat.yaml", CHAT).forked(fork, "abc"))
    assert made.pop("prompt") == fork
    was = yaml.safe_load(CHAT)
    was.pop("prompt")
    assert made == was


@given(st.text(st.sampled_from(" \n\tab:#-'\"{}|>é€😀\u00a0"), max_size=40))
def test_any_prompt_that_people_can_see_is_written_as_it_is_or_refused(text: str) -> None:
    prompt = f"You help.{text}"
    found = read_definition("chat.yaml", CHAT)
    assert yaml.safe_load(found.forked(prompt, "abc"))["prompt"] == prompt
    assert yaml.safe_load(as_yaml({"definition": {"prompt": prompt}}))["definition"]["prompt"] == prompt


def test_of_a_component_the_prompt_and_the_version_change_alone() -> None:
    found = read_definition("greeting.xml", GREETING)
    assert "<role>You greet a shopper.</role>" in found.prompt
    made = found.forked(found.prompt.replace("brief", "brief, and warm"), "abc")
    assert made == GREETING.decode().replace("brief", "brief, and warm").replace("1.4", "1.4-draft.abc")
    assert components({"greeting.xml": made.encode()})[1] == []


@pytest.mark.parametrize(
    "prompt",
    [
        "</prompt><capability category='x' archetype='y'/><prompt>hi",
        "hi</prompt></component>",
        "1 < 2",
        "<rule>open",
        "&unknown;",
        "<!-- </prompt> -->",
        "<![CDATA[</prompt>]]>",
    ],
)
def test_a_prompt_can_not_leave_its_place_in_a_component(prompt: str) -> None:
    found = read_definition("greeting.xml", GREETING)
    try:
        made = found.forked(prompt, "abc")
    except BadDefinition:
        return
    (one,), findings = components({"greeting.xml": made.encode()})
    assert findings == []
    assert [able.category.name for able in one.capabilities] == ["greeting"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"agent_id: chat\ntools: []\n", "chat.yaml:1: prompt: an agent definition has the text of its prompt"),
        (b"agent_id: chat\nprompt: '  '\n", "chat.yaml:2: prompt:"),
        (b"agent_id: chat\nprompt: [a, b]\n", "chat.yaml:2: prompt:"),
        (b"- a\n", "chat.yaml:1: an agent definition is a mapping"),
        (b"prompt: hi\nagent_id: [a]\n", "chat.yaml:2: agent_id: is no name"),
        (b"prompt: 'hi\n", "chat.yaml"),
    ],
)
def test_what_is_no_definition_is_refused_with_its_place(text: bytes, told: str) -> None:
    with pytest.raises(BadDefinition, match=told.replace("[", r"\[")):
        read_definition("chat.yaml", text)


def test_a_component_without_a_prompt_is_refused() -> None:
    with pytest.raises(BadDefinition, match=r"component\.prompt"):
        read_definition("a.xml", b'<component id="a" version="1"></component>')


@pytest.mark.parametrize("where", ["<capability", "</component>"])
def test_a_component_whose_comment_looks_like_its_prompt_is_refused(where: str) -> None:
    raw = GREETING.replace(where.encode(), b"<!-- <prompt>of old</prompt> -->" + where.encode(), 1)
    assert components({"greeting.xml": raw})[1] == []
    with pytest.raises(BadDefinition, match="a comment names its tags too"):
        read_definition("greeting.xml", raw)


def test_a_prompt_is_the_same_however_it_is_set() -> None:
    assert prompt_hash("You help  shoppers.\nBe kind!") == prompt_hash("you help shoppers be\u200b KIND")
    assert prompt_hash("You help shoppers.") != prompt_hash("You help people.")


def row(item: str, asked: Any = None) -> dict[str, Any]:
    return {"input": f"question about {item}" if asked is None else asked, "metadata": {"id": item}}


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=30), st.integers(0, 30))
def test_an_item_stays_on_its_side_whatever_is_added(items: list[str], first: int) -> None:
    before, after = split([row(item) for item in items[:first]]), split([row(item) for item in items])
    assert set(before.held_out) == {item for item in items[:first] if item in after.held_out}


def test_about_the_part_that_is_asked_for_is_held_out() -> None:
    for part in (0.2, 0.5, 0.8):
        held = sum(is_held_out(f"item-{number}", part) for number in range(2_000))
        assert abs(held / 2_000 - part) < 0.05


def test_a_larger_part_holds_out_what_a_smaller_one_does() -> None:
    small, large = ({n for n in range(300) if is_held_out(f"i{n}", part)} for part in (0.3, 0.6))
    assert small < large


def test_an_item_that_asks_what_a_held_out_one_asks_is_shown_to_nobody() -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown = next(f"i{n}" for n in range(100) if not is_held_out(f"i{n}"))
    found = split([row(held, "Where is my parcel?"), row(shown, "where  is my PARCEL"), row(f"{shown}x", "?")])
    assert shown in found.twins
    assert shown not in {*found.shown, *found.held_out}


LONG = "my parcel with the two lamps was to come on Monday and it has not come yet, where is it?"


@pytest.mark.parametrize(
    ("held_out", "asked"),
    [
        ({"question": "where is my parcel", "order": 7}, {"order": 7, "question": "Where is my parcel?"}),
        ("where is my parcel", "where is my parcel please"),
        ("please where is my parcel", "where is my parcel"),
        ("where is my parcel", {"messages": [{"content": "where is my parcel"}]}),
        (LONG, LONG.replace("Monday", "Tuesday")),
        ("???", "???"),
    ],
)
def test_a_twin_in_other_spelling_or_nearly_the_same_is_shown_to_nobody(held_out: Any, asked: Any) -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown, other = [f"i{n}" for n in range(100) if not is_held_out(f"i{n}")][:2]
    found = split([row(held, held_out), row(shown, asked), row(other, "how do I pay with a card?")])
    assert (found.twins, [*found.shown]) == ((shown,), [other])


@pytest.mark.parametrize(
    ("held_out", "asked"),
    [
        ("how do I do 4", "how do I do 5"),
        ("where is my parcel", "where is my refund"),
        ({"order": 7}, {"order": 8}),
        ("?", "!"),
        (LONG, LONG.replace("Monday", "Tuesday").replace("two lamps", "three chairs")),
    ],
)
def test_another_question_in_the_same_form_stays_shown(held_out: Any, asked: Any) -> None:
    held = next(f"i{n}" for n in range(100) if is_held_out(f"i{n}"))
    shown = next(f"i{n}" for n in range(100) if not is_held_out(f"i{n}"))
    assert split([row(held, held_out), row(shown, asked)]).twins == ()


CURRENT = "You help shoppers. Be kind."
ITEM = "my parcel went to the wrong house and the neighbour keeps it"
WORDS = st.lists(st.text("abcdefghij", min_size=2, max_size=9), min_size=RUN, max_size=20)


@given(WORDS, st.text(max_size=40), st.text(max_size=40))
def test_every_run_of_words_of_an_item_is_found_wherever_it_stands(said: list[str], before: str, after: str) -> None:
    fork = f"{before} . {' '.join(said[:RUN])} . {after}"
    assert Items([" ".join(said)]).copied(fork, "")


def test_it_is_found_however_it_is_written() -> None:
    items = Items([ITEM])
    for fork in (
        "If MY PARCEL, went -- to the WRONG house, say sorry.",
        "If my\u200b par\u00adcel we\u0301nt to the\nwrong * house",
        "If ｍｙ ｐａｒｃｅｌ went to the wrong house",
    ):
        assert items.copied(fork, CURRENT), fork


def test_fewer_words_in_a_row_and_what_the_prompt_had_before_are_not_copied() -> None:
    items = Items([ITEM])
    assert not items.copied("If a parcel went to the wrong place, say sorry.", CURRENT)
    assert not items.copied(f"{CURRENT} Say: my parcel went to the wrong house", "my parcel went to the wrong house")


def test_a_short_text_is_copied_where_all_of_it_is() -> None:
    items = Items(["refund my socks", "hello there"])
    assert items.copied("When they say: Refund my socks!", CURRENT)
    assert not items.copied("When they say: refund my shoes, say hello there.", CURRENT)


def test_a_long_number_of_an_item_is_copied_by_itself() -> None:
    items = Items(["order 4711-0815993 is late", "in 2026"])
    assert items.copied("See 0815993 for how.", CURRENT) == ("0815993",)
    assert not items.copied("See 4711 of 2026 for how.", CURRENT)


def test_scripts_without_spaces_are_read_sign_by_sign() -> None:
    assert Items(["我的包裹被送到了错误的地址"]).copied("如果包裹被送到了错误的地方, 请道歉", CURRENT)
    assert words("我的 parcel") == ["我", "的", "parcel"]


def test_all_texts_of_an_item_are_looked_at() -> None:
    item = {"input": {"messages": [{"content": "deep"}]}, "metadata": {"tags": ["tag", 3]}, "output": None}
    assert list(texts_of(item)) == ["deep", "tag"]
