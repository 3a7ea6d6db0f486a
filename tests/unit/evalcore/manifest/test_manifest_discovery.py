"""Capabilities are read from XML prompt components, safely (PF-9 FR-7, §5.6, §5.9, AC-7; PC5 FR-13). What a prompt
component must not hold although it is well-formed: names without the form they must have, text that no one reads,
letters that no one sees (PF-9 FR-7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.manifest.discovery import components
from evalcore.manifest.xml import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS
from evalcore.yaml.findings import Finding

GOOD = """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment is fine -->
<component id="receipt-scan" version="1.2">
  <capability category="receipt_scan" archetype="receipts">
    <description>The user confirms
      a scanned receipt.</description>
    <judges><judge id="response-quality"/><judge id="ux_quality"/></judges>
  </capability>
  <prompt>Be <b>kind</b> &amp; brief. <![CDATA[<ok>]]></prompt>
</component>
"""


def wrong(text: str | bytes, file: str = "prompts/components/c.xml") -> list[Finding]:
    raw = text if isinstance(text, bytes) else text.encode()
    found, findings = components({file: raw})
    assert found == ()
    assert findings, "the file was taken"
    assert all(finding.file == file and finding.fix for finding in findings)
    return findings


def with_capability(inside: str, attributes: str = 'category="a" archetype="b"') -> str:
    body = f"<capability {attributes}>{inside}</capability><prompt>x</prompt>"
    return f'<component id="c" version="1">{body}</component>'


def test_a_component_gives_its_capability_with_places_and_judges_in_their_one_spelling() -> None:
    (component,), findings = components({"c.xml": GOOD.encode()})
    assert findings == []
    (capability,) = component.capabilities
    assert (component.id.name, component.version) == ("receipt-scan", "1.2")
    assert (capability.category.name, capability.category.place) == ("receipt_scan", (4, 3))
    assert capability.archetype.name == "receipts"
    assert capability.description == "The user confirms a scanned receipt."
    assert capability.judges is not None
    assert [judge.name for judge in capability.judges] == ["response_quality", "ux_quality"]


def test_markup_inside_a_prompt_is_text() -> None:
    (component,), _ = components({"c.xml": GOOD.encode()})
    assert component.prompt == "Be <b>kind</b> & brief. <ok>"


def test_what_looks_like_a_capability_inside_a_prompt_declares_none() -> None:
    inside = '<capability category="stolen" archetype="x"/>'
    text = f'<component id="c" version="1"><prompt>see {inside}</prompt></component>'
    (component,), findings = components({"c.xml": text.encode()})
    assert findings == []
    assert component.capabilities == ()


def test_no_list_of_judges_is_something_else_than_an_empty_one() -> None:
    (silent,), _ = components({"c.xml": with_capability("").encode()})
    (none,), _ = components({"c.xml": with_capability("<judges/>").encode()})
    assert silent.capabilities[0].judges is None
    assert none.capabilities[0].judges == ()


@pytest.mark.parametrize(
    ("text", "check"),
    [
        pytest.param("<!DOCTYPE component><component/>", "xml-unsafe", id="document type"),
        pytest.param('<!DOCTYPE c SYSTEM "http://127.0.0.1/c.dtd"><component/>', "xml-unsafe", id="external DTD"),
        pytest.param('<!DOCTYPE c [<!ENTITY e "x">]><component>&e;</component>', "xml-unsafe", id="entity"),
        pytest.param(
            '<!DOCTYPE c [<!ENTITY e SYSTEM "file:///etc/passwd">]><component>&e;</component>',
            "xml-unsafe",
            id="external entity",
        ),
        pytest.param(
            '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;">]><l>&c;</l>',
            "xml-unsafe",
            id="entity bomb",
        ),
        pytest.param("<component>&undeclared;</component>", "xml-syntax", id="undeclared entity"),
        pytest.param("<?php x?><component/>", "xml-unsafe", id="processing instruction"),
        pytest.param('<?xml version="1.0" encoding="ISO-8859-1"?><component/>', "xml-unsafe", id="other encoding"),
        pytest.param("<component/>".encode("utf-16"), "xml-syntax", id="UTF-16"),
        pytest.param("<a>" * (MAX_DEPTH + 1) + "</a>" * (MAX_DEPTH + 1), "xml-limit", id="too deep"),
        pytest.param(f"<a>{'<b/>' * MAX_ELEMENTS}</a>", "xml-limit", id="too many elements"),
        pytest.param(b"<a>" + b" " * MAX_BYTES + b"</a>", "xml-limit", id="too large"),
        pytest.param("", "xml-syntax", id="empty"),
        pytest.param(b"\x00\x01\x02", "xml-syntax", id="binary"),
        pytest.param("<component", "xml-syntax", id="cut off"),
        pytest.param("<component/><component/>", "xml-syntax", id="two outermost elements"),
        pytest.param('<component id="a" id="b"/>', "xml-syntax", id="attribute twice"),
        pytest.param("<prompt>x</prompt>", "prompt-component", id="another outermost element"),
    ],
)
def test_a_file_that_is_unsafe_or_no_component_is_refused_with_a_reason(text: str | bytes, check: str) -> None:
    assert {finding.check for finding in wrong(text)} == {check}


def test_deep_markup_inside_a_prompt_is_limited_too() -> None:
    deep = "<i>" * MAX_DEPTH + "</i>" * MAX_DEPTH
    findings = wrong(f'<component id="c" version="1"><prompt>{deep}</prompt></component>')
    assert [finding.check for finding in findings] == ["xml-limit"]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('<component version="1"><prompt>x</prompt></component>', "component.id"),
        ('<component id=" " version="1"><prompt>x</prompt></component>', "component.id"),
        ('<component id="c"><prompt>x</prompt></component>', "component.version"),
        ('<component id="c" version="1" owner="me"><prompt>x</prompt></component>', "component.owner"),
        ('<component id="c" version="1"/>', "component.prompt"),
        ('<component id="c" version="1"><prompt>  </prompt></component>', "component.prompt"),
        ('<component id="c" version="1"><prompt>x</prompt><prompt>y</prompt></component>', "component.prompt"),
        ('<component id="c" version="1">stray<prompt>x</prompt></component>', "component"),
        (with_capability("", 'archetype="b"'), "component.capability[0].category"),
        (with_capability("", 'category="a"'), "component.capability[0].archetype"),
        (with_capability("", 'category="A b" archetype="b"'), "component.capability[0].category"),
        (with_capability("", 'category="a" archetype="../b"'), "component.capability[0].archetype"),
        (with_capability("<description/>"), "component.capability[0].description"),
        (with_capability("<judges><judge/></judges>"), "component.capability[0].judges.judge[0].id"),
        (with_capability('<judges><judge id="9/x"/></judges>'), "component.capability[0].judges.judge[0].id"),
        (
            with_capability('<judges><judge id="a-b"/><judge id="a_b"/></judges>'),
            "component.capability[0].judges.judge[1].id",
        ),
        (with_capability("<judges>a, b</judges>"), "component.capability[0].judges"),
        (with_capability("<judges><rule/></judges>"), "component.capability[0].judges.rule"),
    ],
)
def test_each_departure_from_the_shape_names_its_field_and_line(text: str, field: str) -> None:
    findings = wrong(text.replace("<capability", "\n<capability"))
    assert [finding.field for finding in findings] == [field]
    assert findings[0].line == (2 if "capability" in field else 1)


def test_a_near_miss_says_what_was_probably_meant() -> None:
    (finding,) = wrong('<component id="c" version="1"><capabilty/><prompt>x</prompt></component>')
    assert "did you mean 'capability'?" in finding.message


def test_all_that_is_wrong_in_a_file_is_said_at_once() -> None:
    findings = wrong('<component vesion="1"><capability catgory="a"/></component>')
    fields = {finding.field for finding in findings}
    assert {"component.id", "component.vesion", "component.version", "component.prompt"} < fields
    assert "component.capability[0].catgory" in fields


def test_a_category_is_declared_once_in_a_component() -> None:
    twice = '<capability category="a" archetype="b"/>' * 2
    (finding,) = wrong(f'<component id="c" version="1">{twice}<prompt>x</prompt></component>')
    assert "twice" in finding.message


def test_an_id_names_one_component() -> None:
    other = GOOD.replace("receipt-scan", "receipt_scan")
    _, findings = components({"b.xml": other.encode(), "a.xml": GOOD.encode()})
    assert [(finding.file, finding.check) for finding in findings] == [("b.xml", "component-twice")]
    assert "a.xml" in findings[0].message


def test_a_broken_file_does_not_hide_the_others() -> None:
    found, findings = components({"a.xml": b"<", "b.xml": GOOD.encode()})
    assert [component.file for component in found] == ["b.xml"]
    assert [finding.file for finding in findings] == ["a.xml"]


@given(st.binary(max_size=400) | st.text(alphabet="<>/component id=\"'&;![]-?x \n", max_size=200).map(str.encode))
def test_no_bytes_make_the_reader_fall(raw: bytes) -> None:
    found, findings = components({"c.xml": raw})
    assert bool(found) != bool(findings)


WELL_FORMED = (
    '<component id="greeting" version="1.0">\n<capability category="greeting" archetype="conversation">\n'
    '<judges><judge id="ux_quality"/></judges>\n</capability>\n<prompt>Greet back.</prompt>\n</component>\n'
)
BAD = [
    ('id="greeting"', 'id="Greeting Card"', "prompt-component", "component.id", 1),
    ('id="greeting"', 'id="../greeting"', "prompt-component", "component.id", 1),
    ('version="1.0"', 'version="latest"', "prompt-component", "component.version", 1),
    ('version="1.0"', 'version="1."', "prompt-component", "component.version", 1),
    ('version="1.0"', f'version="{"1" * 100}"', "prompt-component", "component.version", 1),
    ('"ux_quality"/>', '"ux_quality">data_integrity</judge>', "prompt-component", "judges.judge[0]", 3),
    ("Greet back.", "Greet\u202eback.", "xml-unsafe", "", 5),
    ("Greet back.", "Greet &#x202e;back.", "xml-unsafe", "", 5),
    ('id="ux_quality"', 'id="ux&#x2066;quality"', "xml-unsafe", "", 3),
    ("<prompt>", "<!-- \u2067 --><prompt>", "xml-unsafe", "", 5),
]


def test_a_good_component_is_taken() -> None:
    (component,), findings = components({"c.xml": WELL_FORMED.encode()})
    assert findings == []
    assert component.version == "1.0"


@pytest.mark.parametrize(("old", "new", "check", "field", "line"), BAD)
def test_a_bad_component_is_told_with_its_place_and_left_out(
    old: str, new: str, check: str, field: str, line: int
) -> None:
    assert old in WELL_FORMED
    found, findings = components({"c.xml": WELL_FORMED.replace(old, new, 1).encode()})
    assert found == ()
    told = [finding for finding in findings if finding.check == check and finding.field.endswith(field)]
    assert [finding.line for finding in told] == [line], findings
    assert told[0].fix
    assert told[0].clause == "PF-9 FR-7"
