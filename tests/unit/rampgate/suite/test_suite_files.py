"""A suite is read whole before anything runs; what is wrong is told with file, line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rampgate.input_files import BadFile
from rampgate.suite.suite_files import read_suite
from tests.unit.rampgate.suite.suite_commands import refused
from tests.unit.rampgate.suite.suite_folders import case, written


def test_a_part_that_changes_changes_the_configuration_and_nothing_else_does(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = read_suite(path)
    assert read_suite(path).configuration == before.configuration
    (tmp_path / "README").write_text("no part of it")
    assert read_suite(path).configuration == before.configuration
    (tmp_path / "prompt.md").write_text("better\n")
    after = read_suite(path)
    assert after.configuration != before.configuration
    assert after.parts.keys() == before.parts.keys()


def test_another_program_or_function_with_the_same_parts_is_another_configuration(tmp_path: Path) -> None:
    """Else the answers of the one before would be taken for its own."""
    parts = {"prompt": {"files": ["prompt.md"]}}
    told = [
        {"entry": "agent:answer"}, {"entry": "agent:other"}, {"entry": "agent:answer", "folder": "elsewhere"},
        {"command": ["python3", "agent.py"]}, {"command": ["python3", "agent.py", "--bad"]}, {"command": ["agent.py"]},
    ]  # fmt: skip
    found = [read_suite(written(tmp_path, candidate={**one, "parts": parts})).configuration for one in told]
    assert len(set(found)) == len(told)
    same = {"entry": "agent:answer", "parts": parts, "at_once": 9, "python": "python3.11", "environment": ["LANG"]}
    assert read_suite(written(tmp_path, candidate=same)).configuration == found[0]


def test_an_agent_at_another_address_is_the_same_where_its_parts_are(tmp_path: Path) -> None:
    """Ports and hosts differ from machine to machine; what stands there is what its parts say."""
    parts = {"prompt": {"files": ["prompt.md"]}}
    found = {
        read_suite(written(tmp_path, candidate={"url": f"http://localhost:{port}/", "parts": parts})).configuration
        for port in (8080, 8081)
    }
    assert len(found) == 1


@pytest.mark.parametrize("named", ["../secret.md", "link.md", "*.md", "away/secret.md"])
def test_a_part_lies_in_the_suites_folder_whatever_leads_out_of_it(tmp_path: Path, named: str) -> None:
    """What stands elsewhere has no content of another commit, by which a baseline or a share of blame is found."""
    (tmp_path / "secret.md").write_text("elsewhere")
    folder = tmp_path / "suite"
    path = written(folder, candidate={"entry": "agent:answer", "parts": {"prompt": {"files": [named]}}})
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "away").symlink_to(tmp_path)
    with pytest.raises(BadFile, match=r"parts\.prompt\.files: .* leads out of the suite's folder, to .*secret\.md"):
        read_suite(path)


def test_a_link_within_the_suites_folder_is_a_part(tmp_path: Path) -> None:
    path = written(tmp_path, candidate={"entry": "agent:answer", "parts": {"prompt": {"files": ["link.md"]}}})
    (tmp_path / "link.md").symlink_to(tmp_path / "prompt.md")
    before = read_suite(path).parts
    (tmp_path / "prompt.md").write_text("better\n")
    assert read_suite(path).parts != before


def test_a_file_that_is_renamed_changes_its_part(tmp_path: Path) -> None:
    path = written(tmp_path, candidate={"entry": "agent:answer", "parts": {"tools": {"files": ["tools/*.json"]}}})
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "search.json").write_text("{}")
    before = read_suite(path)
    (tmp_path / "tools" / "search.json").rename(tmp_path / "tools" / "find.json")
    assert read_suite(path).configuration != before.configuration


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"smaples": 3}, "suite.yaml:.*smaples"),
        ({"samples": 0}, "suite.yaml:.*samples"),
        ({"score": "taste"}, "`score` is taste, which is none of the checks and judges"),
        ({"judges": ["is_good"]}, "names a check and a judge"),
        ({"candidate": {"parts": {"prompt": {"value": "x"}}}}, "exactly one of `url`, `command` and `entry`"),
        ({"candidate": {"entry": "agent:answer", "parts": {"prompt": {}}}}, "either `files` or `value`"),
        ({"candidate": {"entry": "agent:answer", "parts": {"p": {"files": ["none.md"]}}}}, r"parts\.p\.files: no file"),
        (
            {"candidate": {"entry": "agent:answer", "parts": {"p": {"files": ["/etc/*"]}}}},
            r"parts\.p\.files: '/etc/\*' is",
        ),
        ({"candidate": {"entry": "agent:answer", "parts": {"p": {"files": ["**.md"]}}}}, "no pattern of names"),
        ({"cases": {"file": "cases.jsonl", "version": 2}}, "`version` and `project` go with `dataset`"),
        ({"cases": {"dataset": "cases"}}, "cases.dataset: 'cases' is not read here"),
        ({"checks": {"is_good": {"regex": "(?=x)"}}}, r"checks\.is_good: regex: RE2 does not take it"),
        ({"checks": {"is_good": {"json_schema": "none.json"}}}, "none.json: can't be read"),
        ({"checks": {"is_good": {"regex": "x", "equals": "y"}}}, "exactly one of `regex`, `json_schema` and `equals`"),
        ({"safety": ["dangerous"]}, "safety: no case has the tag 'dangerous'"),
        ({"cases": {"file": "others.jsonl"}}, "others.jsonl: can't be read"),
    ],
)
def test_a_wrong_field_is_named(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(BadFile, match=told):
        read_suite(written(tmp_path, **changes))


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (case(0), "cases.jsonl:3: id: 'c0' is the id of line 1 too"),
        ({"input": "x"}, "cases.jsonl:3: id: a case has one"),
        ({"id": "x"}, "cases.jsonl:3: input: a case has one"),
        (case(7, tags="even"), "cases.jsonl:3: tags: a list of texts is required"),
        (case(7, cluster=3), "cases.jsonl:3: cluster: a text is required"),
    ],
)
def test_a_wrong_case_is_named_with_its_line(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(BadFile, match=told):
        read_suite(written(tmp_path, [case(0), case(1), row]))


def test_no_case_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="has no case"):
        read_suite(written(tmp_path, []))


def test_slices_that_the_suite_names_are_compared_and_those_of_safety_always(tmp_path: Path) -> None:
    given = [case(number, tags=["even", "odd", "safety"]) for number in range(2)]
    assert {one.slices for one in read_suite(written(tmp_path, given)).cases} == {("even", "odd", "safety")}
    path = written(tmp_path, given, slices=["odd"], safety=["safety"])
    assert {one.slices for one in read_suite(path).cases} == {("odd", "safety")}


@pytest.mark.parametrize("store", ["rediss://eval:hunter2@cache.example:6380/0", "redis://:hunter2@127.0.0.1:6379/0"])
def test_a_store_in_redis_is_refused_by_name_and_its_password_is_not_repeated(folder: Path, store: str) -> None:
    said = refused(written(folder), "--store", store)
    assert "must be the path of a file or s3://bucket/prefix: Redis is no store of suites any more" in said
    assert "hunter2" not in said
