"""Reads XML safely, with the line and column of every element.

No DTD, no entities but XML's own five, no processing instructions, UTF-8 only; size, depth and number are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import UNPRINTABLE, Place
from evalcore.yaml.loader import place as place_after

MAX_BYTES = 1_000_000
MAX_DEPTH = 32
MAX_ELEMENTS = 10_000
SYNTAX = "xml-syntax"
UNSAFE = "xml-unsafe"
LIMIT = "xml-limit"
CLAUSE = "PF-9 FR-7"


@dataclass
class Element:
    """An element; `text` is all text directly inside it, joined."""

    name: str
    attributes: dict[str, str]
    place: Place
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def named(self, name: str) -> list[Element]:
        return [child for child in self.children if child.name == name]

    def all(self) -> Iterator[Element]:
        yield self
        for child in self.children:
            yield from child.all()

    def attribute(self, name: str) -> str:
        """Returns an attribute without the space around it; "" where there is none."""
        return self.attributes.get(name, "").strip()


class _Refused(Exception):
    """Ends the reading of a file whose finding is already noted."""


def read_xml(file: str, raw: bytes, verbatim: tuple[str, ...] = ()) -> tuple[Element | None, list[Finding]]:
    """Returns the outermost element, or None with the reason. Markup inside an element whose path (`a/b`) is in
    `verbatim` is text, as written."""
    if len(raw) > MAX_BYTES:
        message = f"{len(raw)} bytes; a component has at most {MAX_BYTES}"
        return None, [Finding(file, 0, 0, "", LIMIT, message, CLAUSE, "split the component")]
    if not raw.strip():
        return None, [Finding(file, 0, 0, "", SYNTAX, "the file is empty", CLAUSE, "write a <component> or remove it")]
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        place = (before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        message = f"not UTF-8 at byte {error.start}"
        return None, [Finding(file, *place, "", SYNTAX, message, CLAUSE, "save the file as UTF-8 text")]
    reading = _Reading(file, frozenset(verbatim))
    root = reading.read(raw)
    unseen = list(_unseen(file, text, root)) if root is not None else []
    return (None if unseen else root), [*reading.findings, *unseen]


def _unseen(file: str, text: str, root: Element) -> Iterator[Finding]:
    """Yields a finding for the first character that is invisible, or that shows the text in another order than a model
    reads it, also as a reference such as &#x202e;."""
    if (found := UNPRINTABLE.search(text)) is not None:
        yield _letter(file, place_after(text[: found.start()]), found.group())
        return
    for element in root.all():
        for said in (element.text, *element.attributes.values()):
            if (found := UNPRINTABLE.search(said)) is not None:
                yield _letter(file, element.place, found.group())
                return


def _letter(file: str, at: Place, letter: str) -> Finding:
    code = f"U+{ord(letter):04X}"
    message = f"holds the character {code}, which is invisible or no text"
    return Finding(file, *at, "", UNSAFE, message, CLAUSE, f"remove the character {code}")


class _Reading:
    def __init__(self, file: str, verbatim: frozenset[str]) -> None:
        self.file = file
        self.verbatim = verbatim
        self.findings: list[Finding] = []
        self.root: Element | None = None
        self.open: list[Element] = []
        self.inside = 0
        """How deep in markup that is text."""
        self.texts: list[list[str]] = []
        self.count = 0
        self.parser = parser = expat.ParserCreate("UTF-8")
        parser.buffer_text = True
        parser.ordered_attributes = False
        parser.XmlDeclHandler = self.declared
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.entity
        parser.UnparsedEntityDeclHandler = self.entity
        parser.ExternalEntityRefHandler = self.entity
        parser.SkippedEntityHandler = self.entity
        parser.ProcessingInstructionHandler = self.instruction
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters

    def read(self, raw: bytes) -> Element | None:
        try:
            self.parser.Parse(raw, True)
        except _Refused:
            return None
        except expat.ExpatError as error:
            message = expat.errors.messages.get(error.code, "not well-formed")
            fix = "close every element, quote every attribute and write & as &amp;"
            place = (error.lineno, error.offset + 1)
            self.findings.append(Finding(self.file, *place, self.path("."), SYNTAX, message, CLAUSE, fix))
            return None
        return self.root

    def place(self) -> Place:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def path(self, separator: str) -> str:
        return separator.join(element.name for element in self.open)

    def refuse(self, check: str, message: str, fix: str) -> NoReturn:
        self.findings.append(Finding(self.file, *self.place(), self.path("."), check, message, CLAUSE, fix))
        raise _Refused

    def declared(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.upper() not in ("UTF-8", "UTF8", "US-ASCII"):
            self.refuse(UNSAFE, f"the file declares the encoding {encoding!r}", "save and declare it as UTF-8")

    def doctype(self, *_: object) -> None:
        self.refuse(UNSAFE, "a document type declaration is not read", "remove <!DOCTYPE …>")

    def entity(self, *_: object) -> int:
        self.refuse(UNSAFE, "entities are not read", "write the text itself; &amp; &lt; &gt; &quot; &apos; are fine")

    def instruction(self, target: str, data: str) -> None:
        self.refuse(UNSAFE, f"the processing instruction <?{target}…?> is not read", "remove it")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            self.refuse(LIMIT, f"more than {MAX_ELEMENTS} elements", "split the component")
        if len(self.open) + self.inside >= MAX_DEPTH:
            self.refuse(LIMIT, f"elements stand more than {MAX_DEPTH} deep", "flatten them")
        if self.inside or self.path("/") in self.verbatim:
            self.inside += 1
            self.texts[-1].append(f"<{name}{''.join(f' {k}={quoteattr(v)}' for k, v in attributes.items())}>")
            return
        element = Element(name, attributes, self.place())
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def end(self, name: str) -> None:
        if self.inside:
            self.inside -= 1
            self.texts[-1].append(f"</{name}>")
            return
        self.open.pop().text = "".join(self.texts.pop())

    def characters(self, text: str) -> None:
        if self.texts:
            self.texts[-1].append(text)
