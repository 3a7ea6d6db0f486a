"""What YAML can do and a configuration file must not: every form of it, in a file of every kind, is an error with its
place and what to do (PC5 AC-6, FR-9). No form takes long or much memory. What lies in a registry's folders and is no
file to be read: it is reported by name, and reading never hangs or fails."""

from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from evalcore.validation import validate_root, validate_rule_file
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import read_yaml
from tests.shipped import LACKS
from tests.unit.evalcore.yaml.bad_files import ALONE, NAMES, assert_well_told, findings_of, shipped

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{below}'] * 9)}]\n" for below, name in zip("abcdefgh", "bcdefghi", strict=True)
)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x00"


@dataclass(frozen=True)
class Form:
    """`spoil` makes the bad file of a good one. `field` is what the finding names; None: whatever it names. `last`: it
    stands in the line after the good file, else in `line`."""

    check: str
    spoil: Callable[[bytes], bytes]
    field: str | None = ""
    line: int = 1
    last: bool = False


def after(text: str) -> Callable[[bytes], bytes]:
    return lambda raw: raw + text.encode()


def instead(raw: bytes) -> Callable[[bytes], bytes]:
    return lambda _: raw


FORMS: dict[str, Form] = {
    "nothing": Form("empty-file", instead(b"")),
    "only white space": Form("empty-file", instead(b"\n  \n\n")),
    "only a comment": Form("empty-file", instead(b"# to be written\n")),
    "null": Form("empty-file", instead(b"~\n")),
    "only ---": Form("empty-file", instead(b"---\n...\n")),
    "a list": Form("wrong-type", instead(b"- name: x\n- model: y\n")),
    "a text": Form("wrong-type", instead(b"see the wiki\n")),
    "a number": Form("wrong-type", instead(b"42\n")),
    "JSON in a string": Form("wrong-type", instead(b'"{\\"name\\": 1}"\n')),
    "a byte order mark": Form("byte-order-mark", lambda raw: b"\xef\xbb\xbf" + raw),
    "UTF-16": Form("not-utf8", lambda raw: raw.decode().encode("utf-16")),
    "UTF-32": Form("not-utf8", lambda raw: raw.decode().encode("utf-32")),
    "Latin-1": Form("not-utf8", lambda raw: raw + b"anything: caf\xe9\n", None, last=True),
    "half a character": Form("not-utf8", lambda raw: raw + b"anything: \xf0\x9f\x8e\n", None, last=True),
    "a character in too many bytes": Form("not-utf8", lambda raw: raw + b"anything: \xc0\xaf\n", None, last=True),
    "NUL": Form("unprintable-character", lambda raw: raw + b"any\x00thing: 1\n", None, last=True),
    "an escape sequence": Form("unprintable-character", after("anything: \x1b[31mred\n"), None, last=True),
    "text shown in another order": Form("unprintable-character", after("anything: a\u202eb\n"), None, last=True),
    "a picture": Form("not-utf8", instead(PNG), None),
    "an archive": Form("unprintable-character", instead(b"PK\x03\x04\x14\x00\x08\x00"), None),
    "ten megabytes": Form("file-too-large", instead(b"name: " + b"x" * 10_000_000)),
    "ten megabytes of comments": Form("file-too-large", lambda raw: b"# x\n" * 2_500_000 + raw),
    "a tab before a field": Form("yaml-tab", after("anything:\n\tinside: 1\n"), None, last=True),
    "an anchor": Form("yaml-anchor", after("anything: &here 1\n"), "anything", last=True),
    "an alias": Form("yaml-alias", after("anything: *here\n"), "anything", last=True),
    "a merge key": Form("yaml-merge-key", after("<<: {anything: 1}\n"), None, last=True),
    "a tag of Python": Form(
        "yaml-tag", after("anything: !!python/object/apply:os.system [id]\n"), "anything", last=True
    ),
    "a tag of ours": Form("yaml-tag", after("anything: !env HOME\n"), "anything", last=True),
    "a set": Form("yaml-tag", after("anything: !!set {a, b}\n"), "anything", last=True),
    "base 64": Form("yaml-tag", after("anything: !!binary aGVsbG8=\n"), "anything", last=True),
    "a bomb": Form("yaml-alias", instead(BOMB.encode()), "b[0]", line=2),
    "a second document": Form("yaml-documents", after("---\nanything: 1\n"), last=True),
    "a list as a field's name": Form("yaml-key", after("? [a, b]\n: 1\n"), "", last=True),
    "braces without quotes": Form("yaml-key", after("anything: {{input}}\n"), "anything", last=True),
    "a field without a name": Form("yaml-key", after('"": 1\n'), None, last=True),
    "not a number": Form("yaml-number", after("anything: .nan\n"), "anything", last=True),
    "infinity": Form("yaml-number", after("anything: -.inf\n"), "anything", last=True),
    "a number out of all bounds": Form("yaml-number", after("anything: 1e999\n"), "anything", last=True),
    "a number of a thousand digits": Form("yaml-number", after(f"anything: {'9' * 1000}\n"), "anything", last=True),
    "too deep": Form("yaml-nesting", after(f"anything: {'[' * 60}{']' * 60}\n"), None, last=True),
    "very deep": Form("yaml-nesting", after("anything: " + "[" * 100_000), None, last=True),
    "a quote never closed": Form("yaml-syntax", after('anything: "text\n'), "anything", last=True),
    "a bracket never closed": Form("yaml-syntax", after("anything: [1, 2\n"), "anything", last=True),
    "a colon in a text": Form("yaml-syntax", after("anything: note: this\n"), "anything", last=True),
    "text that begins with @": Form("yaml-syntax", after("anything: @home\n"), "anything", last=True),
    "a directive": Form("yaml-syntax", lambda raw: b"%YAML 9.9\n" + raw, None, line=1),
    "a hundred thousand values": Form(
        "yaml-too-many-values", after(f"anything: [{'1,' * 100_001}]\n"), None, last=True
    ),
    "an unknown field": Form("unknown-field", after("anything: 1\n"), "anything", last=True),
    "a field in no language": Form("unknown-field", after("поле: 1\n"), "поле", last=True),
    "a field of a thousand letters": Form("unknown-field", after(f"{'k' * 1000}: 1\n"), "k" * 80, last=True),
    "a number as a field's name": Form("unknown-field", after("404: 1\n"), "404", last=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_is_no_good_yaml_is_told_with_its_place(form: str) -> None:
    wanted = FORMS[form]
    for kind in NAMES:
        good = shipped(kind)
        raw = wanted.spoil(good)
        began = time.process_time()
        findings = findings_of(kind, raw, ALONE)
        seconds = time.process_time() - began
        assert findings, kind
        for finding in findings:
            assert_well_told(finding, raw.count(b"\n") + 1)
        line = good.count(b"\n") + 1 if wanted.last else wanted.line
        told = [finding for finding in findings if finding.check == wanted.check and finding.severity is Severity.ERROR]
        assert told, (kind, findings)
        lines = {finding.line for finding in told}
        assert line in lines or (form == "a tab before a field" and told[0].line == line + 1), (kind, told)
        if wanted.field is not None:
            assert wanted.field in {finding.field for finding in told}, (kind, told)
        assert seconds < 10.0, kind


@pytest.mark.parametrize("kind", NAMES)
def test_a_field_that_stands_twice_is_told_with_both_lines(kind: str) -> None:
    good = shipped(kind).decode()
    number, line = next((n, line) for n, line in enumerate(good.splitlines(), 1) if line[:1].isalpha())
    findings = findings_of(kind, f"{good}{line}\n".encode(), ALONE)
    (told,) = [finding for finding in findings if finding.check == "yaml-duplicate-key"]
    assert told.line == good.count("\n") + 1
    assert told.field == line.partition(":")[0]
    assert f"the first is in line {number}" in told.message


@pytest.mark.parametrize("form", ["a bomb", "ten megabytes", "very deep", "a hundred thousand values"])
def test_no_file_takes_much_memory_to_refuse(form: str) -> None:
    raw = FORMS[form].spoil(shipped("rule"))
    tracemalloc.start()
    try:
        read_yaml("x.yaml", raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60_000_000


def test_a_bomb_is_answered_at_once_however_deep_it_is() -> None:
    names = [f"n{number}" for number in range(2_000)]
    lines = ["n0: &n0 [x]"] + [f"{n}: &{n} [{','.join([f'*{b}'] * 9)}]" for b, n in pairwise(names)]
    began = time.process_time()
    _, findings = read_yaml("x.yaml", "\n".join(lines).encode())
    assert time.process_time() - began < 10.0
    assert {"yaml-anchor", "yaml-alias"} <= {finding.check for finding in findings}


def test_windows_line_ends_and_a_missing_last_line_end_are_fine() -> None:
    good = shipped("rule")
    assert findings_of("rule", good.replace(b"\n", b"\r\n")) == []
    assert findings_of("rule", good.rstrip(b"\n")) == []


TODAY = date(2026, 11, 21)


def circle(path: Path) -> None:
    other = path.with_name("other.yaml")
    path.symlink_to(other)
    other.symlink_to(path)


ODD: dict[str, Callable[[Path], None]] = {
    "a link in a circle": circle,
    "a link that leads nowhere": lambda path: path.symlink_to("nowhere.yaml"),
    "a pipe": os.mkfifo,
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("configs", "specs", "prompts"):
        shutil.copytree(name, tmp_path / name)
    return tmp_path / "configs"


def told(root: Path) -> list[Finding]:
    return [finding for finding in validate_root(root, TODAY).findings if finding.check == "file-not-readable"]


@pytest.mark.timeout(10)
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("folder", ["rules", "rules/receipts", "verticals"])
def test_what_is_no_file_is_told_by_name_and_nothing_hangs(root: Path, odd: str, folder: str) -> None:
    path = root / folder / "odd.yaml"
    ODD[odd](path)
    (finding, *_) = [one for one in told(root) if one.file == path.as_posix()]
    assert finding.fix
    assert finding.clause
    with pytest.raises(OSError):  # noqa: PT011  # which one is the system's matter
        validate_rule_file(path, today=TODAY)


def test_a_manifest_that_cannot_be_read_is_told_and_is_not_called_missing(root: Path) -> None:
    (root / "evaluation_manifest.yaml").unlink()
    circle(root / "evaluation_manifest.yaml")
    assert "evaluation_manifest.yaml" in {Path(finding.file).name for finding in told(root)}
    assert "manifest-is-there" not in {finding.check for finding in validate_root(root, TODAY).findings}


@pytest.mark.parametrize(
    "name", ["rules/odd.yaml", "rules/more", "verticals/odd.yaml", "../specs/verticals/receipts/eval/agreement.yaml"]
)
def test_a_link_out_of_the_registry_is_refused_and_nothing_behind_it_is_quoted(
    root: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    """In a pull request it could lead to any file of the machine that checks it."""
    away = tmp_path_factory.mktemp("away")
    (away / "secret.yaml").write_text("password: hunter2\n  - [\n")
    link = root / name
    link.unlink(missing_ok=True)
    link.symlink_to(away if name == "rules/more" else away / "secret.yaml")
    found = validate_root(root, TODAY)
    assert not found.valid
    assert [one.message for one in found.findings if "leads out of the registry" in one.message]
    assert "hunter2" not in str(found)


def test_a_folder_that_leads_back_to_itself_ends(root: Path) -> None:
    (root / "rules" / "again").symlink_to(root / "rules")
    assert not validate_root(root, TODAY).valid


def test_what_editors_leave_behind_is_no_file_of_ours(root: Path) -> None:
    for name in (".ux_quality.yaml.swp", "ux_quality.yaml~", "#ux_quality.yaml#", "README.md", ".DS_Store"):
        (root / "rules" / name).write_bytes(b"\x00")
    assert [one.field for one in validate_root(root, TODAY).findings] == [*LACKS]


def test_a_registry_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="no such folder"):
        validate_root(tmp_path / "nowhere")
