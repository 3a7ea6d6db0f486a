"""PF-9 FR-9, §5.7: a fork is the same Agent Definition with another prompt, in PC-6's form."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalcore.manifest.discovery import components
from evalcore.optimisation.definition import BadDefinition, as_yaml, prompt_hash, read_definition

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
