"""prompts/components.xsd: shipped components fit it, and it refuses what reading them refuses (PF-9 FR-7, §5.6)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evalcore.manifest.discovery import components
from tests.giving_up import missing
from tests.root import ROOT
from tests.unit.evalcore.manifest.xsd import Schema

FOLDER = ROOT / "prompts"
XSD = FOLDER / "components.xsd"
SHIPPED = sorted((FOLDER / "components").rglob("*.xml"))


def document(capability: str = "", root: str = 'id="a-b" version="1.0"', prompt: str = "<prompt>x</prompt>") -> bytes:
    return f"<component {root}>{capability}{prompt}</component>".encode()


def capability(inside: str = "", attributes: str = 'category="c" archetype="a"') -> str:
    return f"<capability {attributes}>{inside}</capability>"


FIT = {
    "a piece of prompt": document(),
    "with a capability": document(capability("<description>d</description><judges><judge id='a_b'/></judges>")),
    "judges first": document(capability("<judges><judge id='A-b'/></judges><description>d</description>")),
    "no judge at all": document(capability("<judges/>")),
    "two capabilities": document(capability() + capability(attributes='category="d" archetype="a"')),
    "markup in the prompt": document(prompt="<prompt lang='en'>a <b c='d'><judge/></b> e</prompt>"),
    "a name of 63": document(capability(attributes=f'category="{"c" * 63}" archetype="a"')),
    "the schema's place": document(
        root='id="a" version="1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        'xsi:noNamespaceSchemaLocation="../components.xsd"'
    ),
}
MANY = range(101)
MISFIT = {
    "another outermost element": b"<prompt>x</prompt>",
    "no prompt": document(prompt=""),
    "two prompts": document(prompt="<prompt>x</prompt><prompt>y</prompt>"),
    "no id": document(root='version="1"'),
    "an empty id": document(root='id="" version="1"'),
    "no version": document(root='id="a"'),
    "an unknown attribute": document(root='id="a" version="1" judge="x"'),
    "an unknown element": document("<capabilities/>"),
    "text between elements": document("text"),
    "a category that is no name": document(capability(attributes='category="Receipt Scan" archetype="a"')),
    "a category that is too long": document(capability(attributes=f'category="{"c" * 64}" archetype="a"')),
    "no archetype": document(capability(attributes='category="c"')),
    "the same category twice": document(capability() + capability()),
    "an empty description": document(capability("<description> </description>")),
    "two descriptions": document(capability("<description>a</description><description>b</description>")),
    "a description with markup": document(capability("<description>a<b/></description>")),
    "two lists of judges": document(capability("<judges/><judges/>")),
    "a judge without an id": document(capability("<judges><judge/></judges>")),
    "a judge that is no id": document(capability("<judges><judge id='7th'/></judges>")),
    "a judge with more": document(capability("<judges><judge id='a' weight='2'/></judges>")),
    "too many capabilities": document("".join(capability(attributes=f'category="c{n}" archetype="a"') for n in MANY)),
}  # fmt: skip


@pytest.fixture(scope="module")
def schema() -> Schema:
    return Schema(XSD)


def read(xml: bytes) -> bool:
    found, findings = components({"a.xml": xml})
    return bool(found) and not findings


def by_xmllint(xml: Path) -> bool:
    """Another opinion, where there is one."""
    done = subprocess.run(
        ["xmllint", "--nonet", "--noout", "--schema", str(XSD), str(xml)], capture_output=True, timeout=30, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_component_fits_and_tells_editors_so(path: Path, schema: Schema) -> None:
    xml = path.read_bytes()
    assert schema.misfits(xml) == []
    assert read(xml)
    named = re.search(r'xsi:noNamespaceSchemaLocation="([^"]+)"', xml.decode())
    assert named, "name the schema: xsi:noNamespaceSchemaLocation"
    assert (path.parent / named.group(1)).resolve() == XSD


@pytest.mark.parametrize("name", FIT)
def test_what_is_read_as_a_component_fits(name: str, schema: Schema) -> None:
    assert read(FIT[name])
    assert schema.misfits(FIT[name]) == []


@pytest.mark.parametrize("name", MISFIT)
def test_what_is_refused_for_its_shape_does_not_fit(name: str, schema: Schema) -> None:
    assert not read(MISFIT[name])
    assert schema.misfits(MISFIT[name])


def test_a_real_validator_agrees(tmp_path: Path) -> None:
    if shutil.which("xmllint") is None:
        missing("xmllint", "no xmllint on this machine: install libxml2-utils")
    for name, xml in {**FIT, **MISFIT}.items():
        path = tmp_path / "component.xml"
        path.write_bytes(xml)
        assert by_xmllint(path) is (name in FIT), name
    assert all(by_xmllint(path) for path in SHIPPED)


def test_there_are_components() -> None:
    assert len(SHIPPED) >= 10
