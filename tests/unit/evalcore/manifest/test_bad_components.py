"""What a prompt component must not hold although it is well-formed: names without the form they must have, text that
nobody reads, letters that nobody sees (PF-9 FR-7)."""

from __future__ import annotations

import pytest

from evalcore.manifest.discovery import components

GOOD = (
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
    (component,), findings = components({"c.xml": GOOD.encode()})
    assert findings == []
    assert component.version == "1.0"


@pytest.mark.parametrize(("old", "new", "check", "field", "line"), BAD)
def test_a_bad_component_is_told_with_its_place_and_left_out(
    old: str, new: str, check: str, field: str, line: int
) -> None:
    assert old in GOOD
    found, findings = components({"c.xml": GOOD.replace(old, new, 1).encode()})
    assert found == ()
    told = [finding for finding in findings if finding.check == check and finding.field.endswith(field)]
    assert [finding.line for finding in told] == [line], findings
    assert told[0].fix
    assert told[0].clause == "PF-9 FR-7"
