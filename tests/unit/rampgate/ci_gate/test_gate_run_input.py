"""`rampgate gate run`: bad input is refused, with the place of what is wrong (contracts §5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import commanded, ran, refused
from tests.unit.rampgate.ci_gate.gate_rig import Rig, item, jsonl


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


def test_bad_input_names_what_is_wrong(rig: Rig, tmp_path: Path) -> None:
    given = ("--dataset", rig.dataset)
    assert "--candidate URL or --outputs FILE" in refused(*given)
    both = refused(*given, "--candidate", "http://x", "--outputs", rig.outputs)
    assert "--candidate URL or --outputs FILE" in both
    assert "no http:// or https://" in refused(*given, "--candidate", "localhost:80")
    lunch = ran(*given, "--milestone", "lunch", "--outputs", rig.outputs)
    assert (lunch.exit_code, "'pre_merge', 'pre_ramp', 'pre_full'" in lunch.stderr) == (2, True), lunch.stderr
    assert "must be NAME@VERSION" in refused(*given, "--dataset-version", "golden", "--outputs", rig.outputs)
    for option in ("--junit", "--markdown", "--html=x.html"):
        assert "say --report FILE" in refused(*given, "--outputs", rig.outputs, option, "x")
    assert "--traces" in refused(*given, "--milestone", "pre_full", "--outputs", rig.outputs)
    assert "can't be read" in refused("--dataset", tmp_path / "no", "--outputs", rig.outputs)
    assert "can't be read" in refused(*given, "--outputs", tmp_path)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"{", ":1: must be JSON"),
        (b'{"id": "a", "output": "x"}\n[]', ":2: must be an object, got []"),
        (b'{"output": "x"}', ":1: id:"),
        (b'{"id": "a"}', ":1: output:"),
        (
            b'{"id": "a", "output": "x"}\n\n{"id": "a", "output": "y"}',
            ":3: id: must be there once, got the answer to 'a' on line 1 too",
        ),
    ],
)
def test_a_broken_file_of_outputs_names_the_line(rig: Rig, lines: bytes, told: str) -> None:
    rig.outputs.write_bytes(lines)
    assert told in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_broken_dataset_names_the_line(rig: Rig) -> None:
    jsonl(rig.dataset, item(0), item(0))
    assert ":2: metadata.id: must be there once, got 'i0' on line 1 too" in refused(
        "--dataset", rig.dataset, "--outputs", rig.outputs
    )
    jsonl(rig.dataset, {"metadata": {}})
    assert ":1: input:" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_registry_with_an_error_is_bad_input(rig: Rig) -> None:
    rig.registry({"rules/brevity.yaml": "{floor: 9}"})
    assert "rules validate" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)
