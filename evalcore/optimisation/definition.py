"""Reads an Agent Definition and writes it with another prompt, and nothing else otherwise (PF-9 FR-9, §5.7). Pure.

It is a YAML mapping that has a `prompt`, or one of PC-6's XML prompt components. PC-1 owns what else a definition has:
fields that are not known here are kept as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from evalcore.framing import unseen
from evalcore.manifest.discovery import Component, components
from evalcore.optimisation.copying import words
from evalcore.registry.judge import digest
from evalcore.yaml.loader import UNPRINTABLE, read_yaml

_PROMPT = re.compile(r"(<prompt(?:\s[^<>]*)?>)(.*)(</prompt>)", re.DOTALL)
_VERSION = re.compile(r'(<component\b[^<>]*?\bversion=)("[^"]*"|\'[^\']*\')')
_PLACE = re.compile(r"\{\{\s*[A-Za-z_][\w.-]*\s*\}\}|(?<!\{)\{[A-Za-z_]\w*\}(?!\})")


class BadDefinition(ValueError):
    """The message names file, line, field and remedy."""


@dataclass(frozen=True)
class AgentDefinition:
    """`others` is all of the definition but its prompt. `component` is set where the file is a prompt component."""

    file: str
    text: str
    prompt: str
    agent_id: str | None
    agent_version: str | None
    vertical: str | None
    others: Mapping[str, Any]
    component: Component | None = None

    @property
    def places(self) -> frozenset[str]:
        """The places in the prompt that the agent fills."""
        return places(self.prompt)

    def forked(self, prompt: str, mark: str) -> str:
        """Returns the file with this prompt. A component's version says that it is the draft `mark`. Raises
        BadDefinition where the text is not the same definition with another prompt."""
        if self.component is None:
            whole = as_yaml({**self.others, "prompt": prompt})
            again = read_definition(self.file, whole.encode())
            if again.prompt != prompt or digest_of(again.others) != digest_of(self.others):
                raise BadDefinition("the prompt can't be written as YAML")
            return whole
        whole = _PROMPT.sub(lambda found: f"{found[1]}{prompt}{found[3]}", self.text, count=1)
        version = f'"{self.component.version.partition("-")[0]}-draft.{mark}"'
        whole = _VERSION.sub(lambda found: f"{found[1]}{version}", whole, count=1)
        made, findings = components({self.file: whole.encode()})
        if findings or len(made) != 1:
            raise BadDefinition("; ".join(finding.message for finding in findings) or "it is no component")
        told = [(one.id.name, _capabilities(one)) for one in (made[0], self.component)]
        if told[0] != told[1] or _inner(whole) != prompt:
            raise BadDefinition("it changes more of the component than its prompt")
        return whole


def read_definition(file: str, raw: bytes) -> AgentDefinition:
    """Reads a definition. Raises BadDefinition."""
    return _component(file, raw) if file.lower().endswith(".xml") else _mapping(file, raw)


def prompt_hash(prompt: str) -> str:
    """Returns a hash of a prompt's words: the same however they are set."""
    return digest(words(prompt))


def as_yaml(data: Mapping[str, Any]) -> str:
    """Returns the mapping as YAML that people read: texts of several lines stand in lines of their own."""
    return str(yaml.dump(dict(data), Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=120))


_DUMPER: Any = type("Dumper", (yaml.SafeDumper,), {})  # a class of its own: representers are the class's


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_DUMPER.add_representer(str, _text)


def digest_of(others: Mapping[str, Any]) -> str:
    """Returns a hash of all of a definition but its prompt."""
    return digest(dict(others))


def places(prompt: str) -> frozenset[str]:
    """Returns the places `{{name}}` and `{name}` of a prompt, which the agent fills."""
    return frozenset(re.sub(r"\s", "", found) for found in _PLACE.findall(prompt))


def hidden(prompt: str) -> str:
    """Returns the code of the first sign that no one sees, or that is no text; empty where there is none."""
    seen = unseen(prompt)
    found = next((one for one in prompt if one in seen or UNPRINTABLE.match(one)), "")
    return f"U+{ord(found):04X}" if found else ""


def _mapping(file: str, raw: bytes) -> AgentDefinition:
    document, findings = read_yaml(file, raw)
    if document is None or findings:
        raise BadDefinition("; ".join(str(finding) for finding in findings) or f"{file}: is empty")
    data = document.data
    if not isinstance(data, dict):
        raise BadDefinition(f"{file}:1: an agent definition is a mapping of fields: prompt, tools, tuning, …")
    prompt = data.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        line = document.at(("prompt",) if "prompt" in data else ())[0]
        raise BadDefinition(f"{file}:{line}: prompt: an agent definition has the text of its prompt; add it")
    names: dict[str, str | None] = {}
    for field in ("agent_id", "agent_version", "vertical"):
        value = data.get(field)
        if value is not None and (not isinstance(value, (str, int, float)) or isinstance(value, bool)):
            raise BadDefinition(f"{file}:{document.at((field,))[0]}: {field}: is no name")
        names[field] = None if value is None else str(value)
    try:
        digest_of(others := {name: value for name, value in data.items() if name != "prompt"})
    except (TypeError, ValueError) as error:
        raise BadDefinition(f"{file}: can't be read: {error}") from error
    return AgentDefinition(
        file, raw.decode(), prompt, names["agent_id"], names["agent_version"], names["vertical"], others
    )


def _component(file: str, raw: bytes) -> AgentDefinition:
    made, findings = components({file: raw})
    if not made:
        raise BadDefinition("; ".join(str(finding) for finding in findings))
    text, one = raw.decode("utf-8"), made[0]
    alone, _ = components({file: f'<component id="a" version="1"><prompt>{_inner(text)}</prompt></component>'.encode()})
    if not alone or alone[0].prompt != one.prompt:
        line = one.id.place[0]
        raise BadDefinition(f"{file}:{line}: component.prompt: a comment names its tags too; reword the comment")
    others = {"component": one.id.name, "version": one.version, "capabilities": _capabilities(one)}
    return AgentDefinition(file, text, _inner(text), None, None, None, others, one)


def _inner(text: str) -> str:
    """What stands between the prompt's tags, as written."""
    found = _PROMPT.search(text)
    return found[2] if found else ""


def _capabilities(one: Component) -> list[list[Any]]:
    return [
        [able.category.name, able.archetype.name, able.description,
         None if able.judges is None else [judge.name for judge in able.judges]]
        for able in one.capabilities
    ]  # fmt: skip
