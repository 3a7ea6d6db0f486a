"""Loads a YAML file as plain data with the place of every field.

Three steps: bytes become text (UTF-8 without a byte order mark, printable, limited in size); libyaml's events become
data; each plain scalar becomes a value. What YAML allows and a configuration must not use is refused: anchors, aliases,
merge keys, tags, duplicate keys, several documents.

Only `true` and `false` are booleans (`yes`, `on` and `off` are text), numbers are decimal (`0644`, `0x1F`, `1_000` and
`12:30` are text), `2026-08-22` is a day. A field that expects another type reports it.

The events are composed here, since a YAML library stops at the first error and a person wants all errors of a file at
once. libyaml reads a rule file in 0.2 ms, a pure Python parser in 14 or more.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import date
from typing import Any, Final

import yaml

from evalcore.yaml.findings import Finding
from evalcore.yaml.source_locations import UNREADABLE, Document, FieldPath, Parsed, Place, Tagged, field_name

__all__ = ["UNREADABLE", "Document", "FieldPath", "Parsed", "Place", "field_name", "read_yaml"]

Scalar = str | int | float | bool | date | None
CLAUSE: Final = "PC5 FR-9"
MAX_BYTES: Final = 1_000_000
MAX_DEPTH: Final = 20
MAX_NODES: Final = 100_000
# What YAML 1.2 §5.1 does not allow in a stream; line breaks that editors don't count; marks that show a text in another
# order than a model reads it; a byte order mark that is not at the start.
UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_WIDE_MARKS: Final = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BREAK: Final = re.compile("\r\n|\r|\n")
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,4})?", re.ASCII)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_NO_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)
_STARTS: Final = frozenset("0123456789-+.")
_FIELD: Final = re.compile(r"(\s*)(?:- )*([A-Za-z_][\w-]{0,79})\s*:")
# Without libyaml the slow parser of PyYAML reads the same files.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class NotANumber(ValueError):
    """A number that is infinite, not a number, or too long to be meant."""


class TooMuch(Exception):
    """The file is deeper or longer than any configuration, or its fields can't be told apart; reading stops."""


def read_yaml(file: str, raw: bytes, tags: Collection[str] = ()) -> tuple[Document | None, list[Finding]]:
    """Returns the document and everything that is wrong with it as YAML; no document where nothing could be read.

    A document that comes with findings holds what could be read, so that its other findings can be told as well. A text
    may have one of these `tags`, and is a `Tagged` then.
    """
    text, findings, whole = decode(file, raw)
    composer = _Composer(file, text, tags)
    document = composer.document()
    if not whole:
        # The text ends where it can't be read; what the parser makes of that end is no finding, but where it is.
        return None, [replace(finding, field=field_name(composer.last_key)) for finding in findings]
    return document, [*findings, *composer.findings]


def place(before: str) -> Place:
    """Returns line and column, from 1, of what follows `before`."""
    breaks = [found.end() for found in _BREAK.finditer(before)]
    return len(breaks) + 1, len(before) - (breaks[-1] if breaks else 0) + 1


def decode(file: str, raw: bytes) -> tuple[str, list[Finding], bool]:
    """Returns the text, what is wrong with it, and whether it is whole.

    Where it is not whole, the text ends before the first character that can't be read.
    """

    def finding(check: str, message: str, fix: str, at: Place = (1, 1)) -> Finding:
        return Finding(file, *at, "", check, message, CLAUSE, fix)

    if len(raw) > MAX_BYTES:
        message = f"larger than {MAX_BYTES:,} bytes; a configuration file is a few pages at most"
        fix = "split the file, or look whether something else was saved under this name"
        return "", [finding("file-too-large", message, fix)], False
    if raw.startswith(_WIDE_MARKS):
        return "", [finding("not-utf8", "is UTF-16 or UTF-32, not UTF-8", "save the file as UTF-8")], False
    wrong: list[Finding] = []
    marks: list[Finding] = []
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw[: error.start].decode("utf-8")
        fix = "save the file as UTF-8; it is text, not a binary file"
        wrong = [finding("not-utf8", f"byte 0x{raw[error.start]:02x} is not UTF-8", fix, place(text))]
    if text.startswith("\ufeff"):
        text = text[1:]
        marks = [finding("byte-order-mark", "begins with a byte order mark", "save the file as UTF-8 without a BOM")]
    if (found := UNPRINTABLE.search(text)) is not None:
        code = f"U+{ord(found.group()):04X}"
        text = text[: found.start()]
        message = f"holds the character {code}, which is invisible or no text; is this a binary file?"
        wrong = [finding("unprintable-character", message, f"remove the character {code}", place(text))]
    return text, [*marks, *wrong], not wrong


def scalar(text: str) -> Scalar:
    """Returns the value of a plain scalar. Raises NotANumber with a sentence."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if text[0] not in _STARTS:
        return text
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number) or len(text) > 40:
            raise NotANumber(f"{text[:20]} is no number of a sensible size")
        return number
    if _NO_NUMBER.fullmatch(text):
        raise NotANumber(f"{text} is not a finite number")
    if _DAY.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            return text
    return text


class _Composer:
    """Composes one file's data from libyaml's events, and notes what a configuration must not use."""

    def __init__(self, file: str, text: str, tags: Collection[str] = ()) -> None:
        self.file, self.text, self.tags = file, text, tags
        self.findings: list[Finding] = []
        self.last_key: FieldPath = ()
        """The field that was read last."""
        self._events: Iterator[Any] = iter(())
        self._places: dict[FieldPath, Place] = {}
        self._incomplete: set[FieldPath] = set()
        self._inside: FieldPath = ()
        """The mapping or list that is being read."""
        self._nodes = 0

    def document(self) -> Document | None:
        """Returns the first document; None where the file is empty or can't be parsed, which is a finding then."""
        self._events = iter(yaml.parse(self.text, Loader=_LOADER))
        try:
            data = self._data()
        except yaml.MarkedYAMLError as error:
            self._syntax(error)
            return None
        except TooMuch:
            return None
        if data is None:
            self._say("empty-file", "is empty", "fill the file in, or delete it", (1, 1), ())
            return None
        return Document(self.file, data, self._places, frozenset(self._incomplete))

    def _data(self) -> Any:
        data, documents = None, 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    fix = "keep one document; remove the line '---' and what belongs to another file"
                    self._say("yaml-documents", "a second document begins; one file is one document", fix, event, ())
                    break
            elif isinstance(event, yaml.NodeEvent):
                self._places[()] = _at(event)
                data = self._value(event, ())
        return data

    def _value(self, event: Any, path: FieldPath, lost: bool = False) -> Any:
        """Reads one value. `lost`: it is inside a value that is dropped, so its places are not kept."""
        self._count(event, path, self.tags if isinstance(event, yaml.ScalarEvent) else ())
        if isinstance(event, yaml.AliasEvent):
            self._alias(event, path)
            return UNREADABLE
        if isinstance(event, yaml.ScalarEvent):
            if event.tag in self.tags:
                return Tagged(event.tag, event.value)
            try:
                return scalar(event.value) if event.implicit[0] else event.value
            except NotANumber as error:
                self._say("yaml-number", str(error), "write a plain decimal number", event, path)
                return UNREADABLE
        if len(path) >= MAX_DEPTH:
            self._say("yaml-nesting", f"nested deeper than {MAX_DEPTH} levels", "flatten the file", event, path)
            raise TooMuch
        outer, self._inside = self._inside, path
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        value = self._mapping(path, lost) if is_mapping else self._sequence(path, lost)
        self._inside = outer
        return value

    def _sequence(self, path: FieldPath, lost: bool) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            item = (*path, len(items))
            if not lost:
                self._places[item] = _at(event)
            items.append(self._value(event, item, lost))
        return items

    def _mapping(self, path: FieldPath, lost: bool) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            name, taken = self._key(event, path, fields)
            if taken and not lost:
                self._places[(*path, name)] = _at(event)
            value = self._value(next(self._events), (*path, name), lost or not taken)
            if taken:
                fields[name] = value
        return fields

    def _key(self, event: Any, above: FieldPath, fields: dict[str, Any]) -> tuple[str, bool]:
        """Reads a field's name; returns it, and whether the field is taken. The value of any other is dropped."""
        if isinstance(event, yaml.AliasEvent):
            self._count(event, above)
            self._alias(event, above)
            self._incomplete.add(above)
            return f"*{event.anchor}", False
        if not isinstance(event, yaml.ScalarEvent):
            fix = "a field's name is plain text; put {{…}} in quotes"
            self._say("yaml-key", "a list or mapping as a field's name", fix, event, above)
            raise TooMuch
        name = event.value
        path = (*above, name)
        self._count(event, path)
        self.last_key = path
        if event.implicit[0] and name == "<<":
            fix = "write the fields out; a file must be readable alone"
            self._say("yaml-merge-key", "merge keys are not allowed", fix, event, path)
            self._incomplete.add(above)
        elif not name.strip():
            self._say("yaml-key", "a field without a name", "give the field a name", event, path)
        elif name in fields:
            message = f"stands a second time; the first is in line {self._places.get(path, (0, 0))[0]}"
            self._say("yaml-duplicate-key", message, "keep one of them", event, path)
        else:
            return name, True
        return name, False

    def _alias(self, event: Any, path: FieldPath) -> None:
        fix = f"write the value out instead of '*{event.anchor}'"
        self._say("yaml-alias", "aliases are not allowed", fix, event, path)

    def _count(self, event: Any, path: FieldPath, tags: Collection[str] = ()) -> None:
        """Counts a key or value, and refuses its anchor, and a tag other than these."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values; no configuration file has as many"
            self._say("yaml-too-many-values", message, "split the file", event, path)
            raise TooMuch
        if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            fix = f"remove '&{event.anchor}' and write the value where it is needed"
            self._say("yaml-anchor", "anchors are not allowed", fix, event, path)
        if (tag := getattr(event, "tag", None)) is not None and tag not in tags:
            fix = f"remove the tag {_short(tag)}; put text in quotes"
            self._say("yaml-tag", "tags are not allowed", fix, event, path)

    def _syntax(self, error: Any) -> None:
        """Reports where the parser gave up, and what to do about the causes that people meet."""
        mark, message = error.problem_mark, str(error.problem or "is not YAML")
        at_end = mark is None or mark.index >= len(self.text.rstrip())
        if error.context_mark is not None and (at_end or message == "could not find expected ':'"):
            mark = error.context_mark
        character = self.text[mark.index : mark.index + 1] if mark is not None else ""
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        check, fix = "yaml-syntax", "compare the indentation, quotes and brackets with the lines around it"
        if character == "\t" or "tab character" in message:
            check, message, fix = "yaml-tab", "a tab in the indentation", "indent with spaces; YAML takes no tabs"
        elif message.startswith("mapping values are not allowed"):
            message = "': ' where no field can begin"
            fix = "put the text in quotes if it holds ': ', or align the field with those beside it"
        elif character and character in "@`%" and "cannot start any token" in message:
            message, fix = f"text can't begin with {character!r}", "put the text in quotes"
        elif message.startswith("did not find expected ','") and character and character in "[]{}":
            fix = "put a text that holds brackets or braces in quotes, or write one field a line"
        elif message.startswith("found unexpected end of stream"):
            message, fix = "the quotes that open here are never closed", "close the quotes"
        self._say(check, message, fix, (line, column), self._around(line))

    def _around(self, line: int) -> FieldPath:
        """Returns the field a line belongs to where the parser could not tell: what looks like a field at or above
        it."""
        known = self._places.get(self.last_key, (0, 0))[0]
        lines = self.text.split("\n", line)[:line]
        for number in range(line, known, -1):
            found = _FIELD.match(lines[number - 1]) if number <= len(lines) else None
            if found is not None:
                return (*(self._inside if found[1] else ()), found[2])
        return self.last_key

    def _say(self, check: str, message: str, fix: str, where: Any, path: FieldPath) -> None:
        """Adds a finding; `where` is a place, or the event at it."""
        at: Place = where if isinstance(where, tuple) else _at(where)
        self.findings.append(Finding(self.file, *at, field_name(path), check, message, CLAUSE, fix))


def _at(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _short(text: str) -> str:
    text = text.replace("tag:yaml.org,2002:", "!!")
    return text if len(text) <= 40 else text[:39] + "…"
