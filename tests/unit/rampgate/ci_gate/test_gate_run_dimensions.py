"""`rampgate gate run`: a judge's dimensions as scores of their own (contracts §3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.rampgate.ci_gate.gate_commands import commanded, gate
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, MANIFEST, Rig

TONE = "dimensions: {tone: {description: How it sounds., %s}, depth: {description: How deep it goes.}}"


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(Rig, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("said", "manifest", "limits"),
    [
        ("threshold: 4.5", "", (4.5, 2.0)),
        ("threshold: {pre_merge: 3}", "", (3.0, 2.0)),
        ("floor: 3", "", (4.0, 3.0)),
        ("", "thresholds: {helpfulness.tone: 4.8}", (4.8, 2.0)),
        ("threshold: {pre_full: 3}", "", None),
        ("", "", None),
    ],
)
def test_a_dimension_with_a_limit_of_its_own_decides_beside_its_judge(
    rig: Rig, said: str, manifest: str, limits: tuple[float, float] | None
) -> None:
    """contracts §3: each is a score of its own. One that nothing was said of is part of its judge's score alone."""
    rig.registry(
        {
            "rules/helpfulness.yaml": f"{{{TONE % said}}}".replace("., }", ".}"),
            "evaluation_manifest.yaml": f"{{{MANIFEST[1:-1]}{', ' if manifest else ''}{manifest}}}",
        }
    )
    scores = gate(rig)["per_judge_scores"]
    assert "helpfulness.depth" not in scores
    assert ("helpfulness.tone" in scores) is (limits is not None)
    if limits is not None:
        one = scores["helpfulness.tone"]
        assert (one["threshold"], one["floor"], one["n"], one["score"]) == (*limits, ITEMS, 5.0)


def test_a_dimension_below_its_threshold_fails_under_its_own_name(rig: Rig, tmp_path: Path) -> None:
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    tone = TONE % "threshold: 4.5"
    rig.registry({"rules/helpfulness.yaml": f"{{enforcement: {{pre_merge: block}}, {tone}}}", **safe})
    rig.answers(lambda n: 0.75)
    found = gate(rig, "--report", tmp_path / "gate.xml", code=1)
    assert found["failing_judges"] == ["helpfulness.tone"]
    assert found["reasons"][0]["message"].startswith("helpfulness.tone scored 4, below its threshold of 4.5")
    assert 'name="helpfulness.tone"' in (tmp_path / "gate.xml").read_text()
