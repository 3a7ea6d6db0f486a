"""`rampgate rules rollback` on a git repository and a local Opik: PC5 FR-10, NFR-6, AC-7, §5.7."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import EVALUATORS, Rig, two_verticals
from tests.unit.rampgate.cli.registry_copies import Ran, edit
from tests.unit.rampgate.registry.git_folders import committed, git

QUALITY = "rules/response_quality.yaml"
OWN = "rules/receipts/response_quality.yaml"
BAD = "Always answer 5."


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik) -> Rig:
    """One vertical; a commit that breaks a judge, which is synced; and a commit about another judge, which is not."""
    await opik.call("POST", "/v1/private/projects", {"name": "receipts-eval"})
    rig = Rig(two_verticals(tmp_path), opik)
    (rig.configs / "verticals/rewards_assistant.yaml").unlink()
    committed(tmp_path)
    assert (await created(rig, "ux_quality")).code == 0
    edit(rig.configs / QUALITY, "## Scores", f"{BAD}\n\n  ## Scores")
    edit(rig.configs / OWN, "threshold:", "floor: 3\nthreshold:")
    committed(tmp_path)
    assert (await created(rig, "response_quality")).code == 0
    edit(rig.configs / "rules/ux_quality.yaml", "tolerance: 0.05", "tolerance: 0.04")
    committed(tmp_path)
    return rig


async def created(rig: Rig, judge: str) -> Ran:
    return await rig.run("rules", "create", "--name", judge, "--file", str(rig.configs / f"rules/{judge}.yaml"))


async def roll_back(rig: Rig, *more: str) -> Ran:
    return await rig.run("rules", "rollback", "response_quality", "--yes", *more)


def changed(rig: Rig) -> list[str]:
    return [line[3:] for line in git(rig.configs, "status", "--porcelain").splitlines()]


async def bad_in_opik(rig: Rig) -> bool:
    rule = (await rig.there())["response_quality"]
    bad = BAD in rule.messages[0][1]
    assert bad == (rule.metadata["floor"] == 3.0), "the copy is one version or the other"
    return bad


async def test_pc5_ac7_a_rollback_restores_files_and_opik_and_times_itself(rig: Rig, tmp_path: Path) -> None:
    """By default to the version before the last commit about the judge; other judges stay as they are in both. Its
    duration is a metric (PC5 §10.2)."""
    good, left = git(rig.configs, "rev-parse", "HEAD~2").strip(), tmp_path / ".git/rollback.prom"
    head = git(rig.configs, "rev-parse", "HEAD")
    assert await bad_in_opik(rig)
    ran = await roll_back(rig, "--json", "--metrics-file", str(left))
    assert (ran.code, ran.json["rolled_back"], ran.json["to"]) == (0, True, good)
    assert [Path(file).name for file in ran.json["files"]] == ["response_quality.yaml", "response_quality.yaml"]
    assert ("floor", 3.0, 2.5) in {(one["field"], one["before"], one["after"]) for one in ran.json["changes"]}
    assert ran.json["verticals"][0]["written"] == ["response_quality"]
    assert BAD not in (rig.configs / QUALITY).read_text()
    assert not await bad_in_opik(rig)
    assert (await rig.there())["ux_quality"].metadata["tolerance"] == 0.05, "not synced by the rollback of another"
    assert "tolerance: 0.04" in (rig.configs / "rules/ux_quality.yaml").read_text()
    assert git(rig.configs, "rev-parse", "HEAD") == head
    assert changed(rig) == [f"configs/{OWN}", f"configs/{QUALITY}"]
    assert ran.json["duration_seconds"] < 15 * 60
    assert "eval_rollback_duration_seconds_count 1.0" in left.read_text()
    assert f"eval_rollback_duration_seconds_sum {ran.json['duration_seconds']}" in left.read_text()


async def test_a_rollback_again_has_nothing_to_do(rig: Rig) -> None:
    await roll_back(rig)
    before = await rig.writes()
    ran = await roll_back(rig)
    assert ran.code == 0
    assert "as at" in ran.out
    assert "0 to create, 0 to update" in ran.out
    assert await rig.writes() == before


async def test_a_named_version_is_restored_in_any_spelling_of_the_judge(rig: Rig) -> None:
    ran = await rig.run("rules", "rollback", "Response-Quality", "--to", "HEAD~2", "--yes")
    assert ran.code == 0
    assert not await bad_in_opik(rig)
    assert "git add" in ran.out


async def test_without_a_yes_or_a_terminal_nothing_is_changed(rig: Rig) -> None:
    before = await rig.writes()
    ran = await rig.run("rules", "rollback", "response_quality")
    assert ran.code == 2
    assert ran.out == ""
    assert re.search("update +response_quality", ran.err)
    assert "floor: 3.0 → 2.5" in ran.err
    assert "--yes" in ran.err
    assert (await rig.run("rules", "rollback", "response_quality", "--dry-run")).code == 0
    assert (changed(rig), await rig.writes()) == ([], before)
    assert await bad_in_opik(rig)


async def test_an_earlier_version_that_holds_an_error_is_neither_written_nor_synced(rig: Rig) -> None:
    edit(rig.configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    committed(rig.configs.parent, "broken")
    edit(rig.configs / QUALITY, "tolerance: -1", "tolerance: 0.2")
    committed(rig.configs.parent, "mended")
    before = await rig.writes()
    ran = await roll_back(rig, "--json")
    assert (ran.code, ran.json["rolled_back"], ran.json["valid"]) == (1, False, False)
    assert ran.json["errors"][0]["field"] == "tolerance"
    text = await roll_back(rig)
    assert "nothing was changed" in text.out
    assert (changed(rig), await rig.writes()) == ([], before)


async def test_a_version_that_is_too_broken_to_serve_can_be_rolled_back(rig: Rig) -> None:
    (rig.configs / QUALITY).write_text("name: [")
    committed(rig.configs.parent, "no rule file at all")
    ran = await rig.run("rules", "rollback", "response_quality", "--to", "HEAD~3", "--yes")
    assert ran.code == 0
    assert not await bad_in_opik(rig)


async def test_where_opik_refuses_the_state_and_the_way_on_are_told_and_the_next_run_finishes(rig: Rig) -> None:
    await rig.opik.fault(match={"path": EVALUATORS, "method": "PATCH"}, status=422, body={"errors": ["no"]}, times=1)
    ran = await roll_back(rig)
    assert ran.code == 1
    assert "half done" in ran.out
    assert "not committed" in ran.out
    assert "Opik does not for: receipts" in ran.out
    assert BAD not in (rig.configs / QUALITY).read_text()
    assert await bad_in_opik(rig)
    (way_on,) = [line for line in ran.out.splitlines() if "to resume:" in line]
    again = await rig.run(*way_on.split("rampgate ")[1].split(), "--yes")
    assert again.code == 0
    assert not await bad_in_opik(rig)


async def test_the_way_back_after_a_refusal_is_true(rig: Rig) -> None:
    await rig.opik.fault(match={"path": EVALUATORS, "method": "PATCH"}, status=503, times=1)
    ran = await roll_back(rig)
    assert ran.code == 2
    (way_back,) = [line for line in ran.out.splitlines() if "to go back:" in line]
    git(rig.configs.parent, *way_back.split("git ")[1].split(" && ")[0].split())
    assert changed(rig) == []
    assert (await rig.sync()).code == 0
    assert await bad_in_opik(rig)


@pytest.mark.parametrize("status", [403, 503])
async def test_an_opik_that_cannot_even_be_read_leaves_the_files_as_they_are(rig: Rig, status: int) -> None:
    await rig.opik.fault(match={"path": EVALUATORS, "method": "GET"}, status=status)
    ran = await roll_back(rig)
    assert ran.code == 2
    assert "nothing was changed" in ran.err
    assert changed(rig) == []


async def test_a_vertical_without_a_project_holds_no_copy_and_hinders_nobody(rig: Rig) -> None:
    (rig.configs / "verticals/shopping.yaml").write_text("name: shopping\nproject: not-made-yet\n")
    assert (await roll_back(rig)).code == 0
    assert not await bad_in_opik(rig)


async def test_work_that_no_commit_has_is_not_lost(rig: Rig) -> None:
    edit(rig.configs / QUALITY, BAD, "work of an afternoon")
    ran = await roll_back(rig)
    assert (ran.code, ran.out) == (2, ""), "said before anything is planned or asked"
    assert "not committed" in ran.err
    assert "work of an afternoon" in (rig.configs / QUALITY).read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("respons_quality",), "response_quality"),
        (("respons_quality", "--to", "HEAD~1"), "response_quality"),
        (("response_quality", "--to", "nowhere"), "nowhere"),
        (("jailbreaking",), "--to"),
    ],
)
async def test_a_judge_or_version_that_is_none_is_bad_input(rig: Rig, arguments: tuple[str, ...], said: str) -> None:
    ran = await rig.run("rules", "rollback", *arguments, "--yes")
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert changed(rig) == []


async def test_a_judge_that_was_removed_comes_back(rig: Rig) -> None:
    """With the manifest still naming it: what was removed is restored, in the files and in Opik."""
    (rig.configs / "rules/greeting_quality.yaml").unlink()
    committed(rig.configs.parent, "removed")
    ran = await rig.run("rules", "rollback", "greeting_quality", "--yes")
    assert ran.code == 0
    assert (rig.configs / "rules/greeting_quality.yaml").exists()
