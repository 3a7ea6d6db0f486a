"""In a folder without `configs/` a command whose answer needs the registry says where it looked, and gives none. A
`--vertical` that is not registered: each command refuses it in the same words, and names those that are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.root import ROOT
from tests.unit.rampgate.checks.score_commands import alone, ran, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

COMMANDS = {
    "check drift": ("check", "drift", "scores.jsonl", "scores.jsonl"),
    "check cadence": ("check", "cadence"),
    "check inversion": ("check", "inversion"),
    "calibrate production": ("calibrate", "production", "scores.jsonl"),
    "calibrate jade": ("calibrate", "jade"),
    "export": ("export", "--where", "feedback_scores.user_signal_thumbs < 0"),
    "rules list": ("rules", "list"),
    "rules sync": ("rules", "sync", "--dry-run"),
    "manifest show": ("manifest", "show"),
}


ANSWERS = {
    **{command: (*words, "--vertical", "receipts") for command, words in COMMANDS.items()},
    "coverage": ("coverage",),
    "turn": ("turn", "resp_1"),
    "sweep": ("sweep", "--since", "2d"),
    "traces": ("traces",),
    "check drift, all": ("check", "drift", "scores.jsonl", "scores.jsonl"),
    "check drift, asking": ("check", "drift", "--outputs", "scores.jsonl"),
    "check noise": ("check", "noise"),
    "check canaries": ("check", "canaries"),
    "check inversion, users": ("check", "inversion", "--users", "--vertical", "receipts"),
    "check inversion, published": ("check", "inversion", "pairs.jsonl", "--standing", "standing.jsonl"),
    "gate run": ("gate", "run", "--milestone", "pre_merge", "--outputs", "scores.jsonl"),
    "gate compare": ("gate", "compare", "--old", "HEAD", "--traces", "scores.jsonl"),
    "rules diff": ("rules", "diff"),
    "rules validate": ("rules", "validate"),
    "manifest validate": ("manifest", "validate"),
    "manifest sync": ("manifest", "sync", "--yes"),
    "datasets": ("datasets",),
    "vertical scaffold": ("vertical", "scaffold", "shopping"),
}


def files(folder: Path) -> None:
    jsonl(folder / "scores.jsonl", *scored("ux_quality", [0.8, 0.9] * 20))
    pairs = [
        {"judge_id": "ux_quality", "judge_version": "1", "item_id": f"i{n}", "judge_score": n % 5, "human_score": n % 5}
        for n in range(30)
    ]
    jsonl(folder / "pairs.jsonl", *pairs)


@pytest.mark.parametrize("command", ANSWERS)
def test_pf9_fr1_a_command_that_needs_the_registry_ends_with_2_and_the_folder_it_looked_in(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a registered vertical is called `unregistered`, and a limit that is stated is said not to be."""
    alone(tmp_path, monkeypatch)
    files(tmp_path)
    monkeypatch.setenv("RAMPGATE_MODEL_URL", "http://127.0.0.1:1/v1")
    code, document, told = ran(*ANSWERS[command])
    assert (code, document["text"]) == (2, "")
    assert f"{tmp_path}/configs: no such folder" in told.replace("\n", "")
    assert "RAMPGATE_CONFIGS" in told


@pytest.mark.parametrize(
    "words",
    [("check", "inversion", "pairs.jsonl"), ("calibrate", "seed", "scores.jsonl"), ("settings",)],
    ids=["inversion", "calibrate", "settings"],
)
def test_a_file_alone_is_answered_without_a_registry(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    files(tmp_path)
    assert ran(*words)[0] == 0


@pytest.mark.parametrize("words", [("conservation",), ("dead-letters", "list"), ("triage",)])
def test_what_redis_and_kafka_alone_know_is_asked_for_without_a_registry(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    monkeypatch.setenv("RAMPGATE_KAFKA", "127.0.0.1:1")
    monkeypatch.setenv("RAMPGATE_REDIS", "redis://127.0.0.1:1/0")
    code, _, told = ran(*words)
    assert (code, "127.0.0.1:1" in told, "no such folder" in told) == (2, True, False), told


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_the_same_of_a_vertical_that_is_not_there(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone(tmp_path, monkeypatch)
    jsonl(tmp_path / "scores.jsonl", *scored("helpfulness", [0.8, 0.9]))
    words = (*COMMANDS[command], "--vertical", "reciepts", "--configs", str(ROOT / "configs"))
    code, _, told = ran(*words)
    assert (code, told) == (2, "rampgate: --vertical: no vertical 'reciepts'; did you mean receipts?\n")
