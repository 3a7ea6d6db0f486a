"""prompts/components.xsd: shipped components fit it, and it refuses what reading them refuses (PF-9 FR-7, §5.6)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from evalcore.manifest.discovery import components
from tests.giving_up import missing
from tests.root import ROOT

XS = "{http://www.w3.org/2001/XMLSchema}"
INSTANCE = "{http://www.w3.org/2001/XMLSchema-instance}"


def word(node: ET.Element) -> str:
    assert node.tag.startswith(XS), node.tag
    return node.tag.removeprefix(XS)


def parts(node: ET.Element, *known: str) -> list[ET.Element]:
    found = [child for child in node if word(child) != "annotation"]
    assert all(word(child) in known for child in found), [child.tag for child in found]
    return found


class Schema:
    def __init__(self, path: Path) -> None:
        top = ET.parse(path).getroot()  # noqa: S314 # our own file
        found = parts(top, "element", "complexType", "simpleType")
        self.types = {node.get("name"): node for node in found if word(node) != "element"}
        self.roots = {node.get("name"): node for node in found if word(node) == "element"}

    def misfits(self, xml: bytes) -> list[str]:
        """What keeps a document from fitting; empty where it fits."""
        try:
            root = ET.fromstring(xml)  # noqa: S314 # made up by tests, or shipped
        except ET.ParseError as error:
            return [str(error)]
        declared = self.roots.get(root.tag)
        return [f"no element {root.tag}"] if declared is None else list(self.element(declared, root))

    def element(self, declared: ET.Element, node: ET.Element) -> Iterator[str]:
        assert set(declared.attrib) <= {"name", "type", "minOccurs", "maxOccurs"}
        inner = parts(declared, "complexType", "unique")
        kind = self.types[declared.get("type")] if declared.get("type") else inner[0]
        if word(kind) == "simpleType":
            yield from (f"{node.tag} has attribute {name}" for name in node.attrib)
            yield from (f"{node.tag} holds {child.tag}" for child in node)
            yield from self.value(kind, node.text or "", node.tag)
        else:
            yield from self.complex(kind, node)
        for unique in (one for one in inner if word(one) == "unique"):
            selector, field = parts(unique, "selector", "field")
            chosen = node.findall(selector.attrib["xpath"])
            values = [one.get(field.attrib["xpath"].removeprefix("@")) for one in chosen]
            yield from (f"{value} is not unique" for value in set(values) if values.count(value) > 1)

    def complex(self, kind: ET.Element, node: ET.Element) -> Iterator[str]:
        inner = parts(kind, "sequence", "all", "attribute", "anyAttribute")
        attributes = {one.attrib["name"]: one for one in inner if word(one) == "attribute"}
        for name, declared in attributes.items():
            assert declared.get("use") == "required"
            if name not in node.attrib:
                yield f"{node.tag} lacks attribute {name}"
            else:
                yield from self.value(self.types[declared.get("type")], node.attrib[name], f"{node.tag}/@{name}")
        if not any(word(one) == "anyAttribute" for one in inner):
            unknown = [name for name in node.attrib if name not in attributes and not name.startswith(INSTANCE)]
            yield from (f"{node.tag} has attribute {name}" for name in unknown)
        if kind.get("mixed") != "true" and any((text or "").strip() for text in texts(node)):
            yield f"text in {node.tag}"
        model = next((one for one in inner if word(one) in ("sequence", "all")), None)
        yield from self.children(model, node)

    def children(self, model: ET.Element | None, node: ET.Element) -> Iterator[str]:
        declared = [] if model is None else parts(model, "element", "any")
        if any(word(one) == "any" for one in declared):
            assert len(declared) == 1
            assert declared[0].get("processContents") == "skip"
            return
        order = [one.attrib["name"] for one in declared]
        names = [child.tag for child in node]
        for one in declared:
            least, most = int(one.get("minOccurs", "1")), int(one.get("maxOccurs", "1"))
            if not least <= names.count(one.attrib["name"]) <= most:
                yield f"{names.count(one.attrib['name'])} of {one.attrib['name']} in {node.tag}"
        yield from (f"{node.tag} holds {name}" for name in names if name not in order)
        if model is not None and word(model) == "sequence":
            known = [order.index(name) for name in names if name in order]
            if known != sorted(known):
                yield f"{node.tag} is out of order"
        for child in node:
            if child.tag in order:
                yield from self.element(declared[order.index(child.tag)], child)

    def value(self, kind: ET.Element, text: str, where: str) -> Iterator[str]:
        (restriction,) = parts(kind, "restriction")
        base = restriction.get("base")
        assert base in ("xs:string", "xs:token")
        text = " ".join(text.split()) if base == "xs:token" else text
        for facet in parts(restriction, "pattern", "minLength"):
            wanted = facet.attrib["value"]
            if word(facet) == "minLength" and len(text) < int(wanted):
                yield f"{where} is shorter than {wanted}"
            if word(facet) == "pattern" and not re.fullmatch(wanted, text):
                yield f"{where} is {text!r}"


def texts(node: ET.Element) -> list[str | None]:
    return [node.text, *(child.tail for child in node)]


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
