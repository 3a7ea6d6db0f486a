"""Reads the capabilities that XML prompt components declare (PF-9 FR-7, §5.6; PC5 FR-13). They become the manifest's
list of categories.

    <component id="receipt-scan" version="1.2">
      <capability category="receipt_scan" archetype="receipts">
        <description>The user confirms a scanned receipt.</description>
        <judges><judge id="response_quality"/></judges>
      </capability>
      <prompt>…</prompt>
    </component>

A component may declare several capabilities, or none when it is only a piece of prompt. A capability without <judges>
leaves the selection to whoever else declares its category. Inside <prompt> any markup is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evalcore.manifest.xml import Element, read_xml
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Place
from evalcore.yaml.suggestions import near_miss
from schemas.judges import JUDGE_ID, judge_id
from schemas.manifests import CATEGORY

CLAUSE = "PF-9 FR-7"
SHAPE = "prompt-component"
CAPABILITIES = 100
"""More in one component is no component."""
FORMS = {
    "id": (re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*"), "one word in kebab case, such as offer-discovery"),
    "version": (re.compile(r"[0-9]+(\.[0-9]+)*(-[0-9A-Za-z.]+)?"), "numbers with dots between them, such as 1.2"),
}
"""Forms of attributes, as in components.xsd."""


@dataclass(frozen=True)
class Named:
    """A name with its place."""

    name: str
    place: Place


@dataclass(frozen=True)
class Capability:
    """`judges` is None where the component says nothing of them."""

    category: Named
    archetype: Named
    description: str | None
    judges: tuple[Named, ...] | None


@dataclass(frozen=True)
class Component:
    file: str
    id: Named
    version: str
    capabilities: tuple[Capability, ...]
    prompt: str


def components(files: Mapping[str, bytes]) -> tuple[tuple[Component, ...], list[Finding]]:
    """Returns the components of these files, sorted by file, and all that is wrong with them. A component with a
    finding is left out, so that no half-read component reaches the manifest."""
    found: list[Component] = []
    findings: list[Finding] = []
    for file in sorted(files):
        component, wrong = _component(file, files[file])
        findings += wrong
        if component is not None and not wrong:
            found.append(component)
    return tuple(found), findings + _said_twice(found)


def _said_twice(found: list[Component]) -> list[Finding]:
    first: dict[str, Component] = {}
    findings = []
    for component in found:
        key = judge_id(component.id.name)
        if key in first:
            message = f"component {component.id.name!r} is already declared in {first[key].file}"
            fix = "give it an id of its own, or remove one of the two files"
            findings.append(
                Finding(component.file, *component.id.place, "component.id", "component-twice", message, CLAUSE, fix)
            )
        first.setdefault(key, component)
    return findings


def _component(file: str, raw: bytes) -> tuple[Component | None, list[Finding]]:
    root, findings = read_xml(file, raw, verbatim=("component/prompt",))
    if root is None:
        return None, findings
    reader = _Reader(file, findings)
    return reader.component(root), findings


class _Reader:
    """Reads one file's elements and notes every departure from the form above."""

    def __init__(self, file: str, findings: list[Finding]) -> None:
        self.file = file
        self.findings = findings

    def wrong(self, place: Place, field: str, message: str, fix: str = "") -> None:
        self.findings.append(Finding(self.file, *place, field[:200], SHAPE, message[:400], CLAUSE, fix))

    def component(self, root: Element) -> Component | None:
        if root.name != "component":
            self.wrong(root.place, "", f"the outermost element is <{root.name}>, not <component>", "see prompts/")
            return None
        self.attributes(root, "component", ("id", "version"))
        for name, (form, example) in FORMS.items():
            value = root.attribute(name)
            if value and not (form.fullmatch(value) and len(value) <= 63):
                self.wrong(
                    root.place, f"component.{name}", f"{value[:60]!r} is no {name} of a component", f"write {example}"
                )
        self.children(root, "component", {"capability": CAPABILITIES, "prompt": 1})
        capabilities = tuple(
            self.capability(element, f"component.capability[{index}]")
            for index, element in enumerate(root.named("capability"))
        )
        self._categories_twice(capabilities)
        prompts = root.named("prompt")
        if not prompts or not prompts[0].text.strip():
            place = prompts[0].place if prompts else root.place
            self.wrong(place, "component.prompt", "a component needs the text of its prompt", "add <prompt>…</prompt>")
        text = prompts[0].text if prompts else ""
        return Component(
            self.file, Named(root.attribute("id"), root.place), root.attribute("version"), capabilities, text
        )

    def _categories_twice(self, capabilities: tuple[Capability, ...]) -> None:
        seen: set[str] = set()
        for index, capability in enumerate(capabilities):
            if capability.category.name and capability.category.name in seen:
                message = f"category {capability.category.name!r} is declared twice in this component"
                self.wrong(capability.category.place, f"component.capability[{index}].category", message, "keep one")
            seen.add(capability.category.name)

    def capability(self, element: Element, field: str) -> Capability:
        self.attributes(element, field, ("category", "archetype"))
        self.children(element, field, {"description": 1, "judges": 1})
        category = Named(element.attribute("category"), element.place)
        archetype = Named(element.attribute("archetype"), element.place)
        for word, named in (("category", category), ("archetype", archetype)):
            if named.name and not CATEGORY.fullmatch(named.name):
                message = f"{named.name!r} is no name of {'a category' if word == 'category' else 'an archetype'}"
                self.wrong(
                    named.place, f"{field}.{word}", message, "lower-case letters, digits and _ such as general_qa"
                )
        descriptions = element.named("description")
        for described in descriptions:
            self.attributes(described, f"{field}.description", ())
            self.children(described, f"{field}.description", {})
            if not described.text.strip():
                self.wrong(described.place, f"{field}.description", "an empty description", "say what a user does here")
        lists = element.named("judges")
        return Capability(
            category,
            archetype,
            " ".join(descriptions[0].text.split()) or None if descriptions else None,
            self.judges(lists[0], f"{field}.judges") if lists else None,
        )

    def judges(self, element: Element, field: str) -> tuple[Named, ...]:
        self.attributes(element, field, ())
        self.children(element, field, {"judge": CAPABILITIES})
        found: dict[str, Named] = {}
        for index, judge in enumerate(element.named("judge")):
            self.attributes(judge, f"{field}.judge[{index}]", ("id",))
            self.children(judge, f"{field}.judge[{index}]", {})
            if judge.text.strip():
                message = "text inside <judge>, which names a judge by its id"
                self.wrong(judge.place, f"{field}.judge[{index}]", message, 'write <judge id="…"/>')
            name = judge_id(judge.attribute("id"))
            if name in found:
                self.wrong(judge.place, f"{field}.judge[{index}].id", f"judge {name!r} is listed twice", "keep one")
            elif name and not JUDGE_ID.fullmatch(name):
                self.wrong(
                    judge.place, f"{field}.judge[{index}].id", f"{name!r} is no judge id", "use a rule file's stem"
                )
            elif name:
                found[name] = Named(name, judge.place)
        return tuple(found.values())

    def attributes(self, element: Element, field: str, required: tuple[str, ...]) -> None:
        for name in required:
            if not element.attribute(name):
                state = "empty" if name in element.attributes else "missing"
                fix = f'write <{element.name} {name}="…">'
                self.wrong(
                    element.place, f"{field}.{name}", f"the attribute {name!r} of <{element.name}> is {state}", fix
                )
        for name in element.attributes:
            if name in required or (field == "component" and name.startswith(("xmlns", "xsi:"))):
                continue  # an editor needs the latter two to find the schema
            message = f"<{element.name}> has no attribute {name!r}" + near_miss(name, required)
            self.wrong(element.place, f"{field}.{name}", message, "remove it or correct its name")

    def children(self, element: Element, field: str, allowed: Mapping[str, int]) -> None:
        counts: dict[str, int] = {}
        for child in element.children:
            counts[child.name] = counts.get(child.name, 0) + 1
            if child.name not in allowed:
                message = f"<{element.name}> holds no <{child.name}>" + near_miss(child.name, allowed)
                self.wrong(child.place, f"{field}.{child.name}", message, "remove it or correct its name")
            elif counts[child.name] == allowed[child.name] + 1:
                message = f"more than {allowed[child.name]} <{child.name}> in <{element.name}>"
                self.wrong(child.place, f"{field}.{child.name}", message, "split or merge them")
        if allowed and element.text.strip():
            message = f"text between the elements of <{element.name}>"
            self.wrong(element.place, field, message, "put it into <prompt> or <description>, or into a comment")
