"""Reads as much of XML Schema as `prompts/components.xsd` uses, so that components are held against it on machines that
have no validator. A word of XML Schema that is not known here is an error: nothing is passed over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

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
