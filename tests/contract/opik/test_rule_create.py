"""`rampgate rules create`: one judge from its file to Opik (PC5 FR-9, AC-7, §5.7)."""

from __future__ import annotations

from pathlib import Path

from tests.contract.opik.sync_rig import EVALUATORS, QUALITY, Rig
from tests.unit.rampgate.cli.registry_copies import edit

CREATE = {"path": EVALUATORS, "method": "POST"}


async def test_pc5_own_form_creates_and_restores_one_rule(rig: Rig) -> None:
    """AC-7: rules.py create --name <rule> --file configs/rules/<rule>.yaml, run again with the prior file."""
    form = ("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY))
    ran = await rig.run(*form, "--json")
    assert ran.code == 0
    assert list(await rig.there("receipts")) == list(await rig.there("rewards_assistant")) == ["response_quality"]
    good = await rig.there()
    text = (rig.configs / QUALITY).read_text()
    edit(rig.configs / QUALITY, "## Scores", "Always answer 5.\n\n  ## Scores")
    assert (await rig.run(*form)).code == 0
    assert await rig.there() != good
    (rig.configs / QUALITY).write_text(text)
    assert (await rig.run(*form)).code == 0
    assert await rig.there() == good
    before = await rig.writes()
    assert (await rig.run(*form)).code == 0
    assert await rig.writes() == before


async def test_create_takes_the_name_in_any_spelling_and_refuses_anothers(rig: Rig, tmp_path: Path) -> None:
    file = str(rig.configs / "rules/ux_quality.yaml")
    for name in ("ux-quality", "UX_Quality", "UX Quality Judge"):
        assert (await rig.run("rules", "create", "--name", name, "--file", file, "--dry-run")).code == 0, name
    ran = await rig.run("rules", "create", "--name", "jailbreaking", "--file", file)
    assert (ran.code, "ux_quality" in ran.err) == (2, True)
    assert (await rig.run("rules", "create", "--name", "x", "--file", "no/such.yaml")).code == 2
    loose = tmp_path / "ux_quality.yaml"
    loose.write_text(Path(file).read_text())
    ran = await rig.run("rules", "create", "--name", "ux_quality", "--file", str(loose))
    assert (ran.code, "FR-9" in ran.err) == (2, True)
    assert not await rig.writes()


async def test_a_verticals_own_rule_file_is_created_in_its_project_alone(rig: Rig) -> None:
    form = ("rules", "create", "--name", "ux-quality", "--file", str(rig.configs / "rules/receipts/ux_quality.yaml"))
    assert (await rig.run(*form, "--vertical", "rewards_assistant")).code == 2
    assert (await rig.run(*form)).code == 0
    assert list(await rig.there("receipts")) == ["ux_quality"]
    assert await rig.there("rewards_assistant") == {}


async def test_a_broken_file_is_not_created(rig: Rig) -> None:
    edit(rig.configs / QUALITY, "tolerance: 0.2", "tolerance: -1")
    ran = await rig.run("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY), "--json")
    assert (ran.code, ran.json["synced"]) == (1, False)
    assert not await rig.writes()


async def test_pc5_fr9_ac7_every_judge_of_the_registry_is_written_by_name(rig: Rig) -> None:
    """PC5 FR-9, AC-8: also those of some sub-agents, which Opik's filters can't say. Disabled, they fire on nothing."""
    file = rig.configs / "rules/greeting_quality.yaml"
    form = ("rules", "create", "--name", "greeting_quality", "--file", str(file))
    assert (await rig.run(*form)).code == 0
    (first,) = (await rig.there()).values()
    edit(file, "## Scores", "Always answer 5.\n\n  ## Scores")
    assert (await rig.run(*form)).code == 0
    (changed,) = (await rig.there()).values()
    assert (changed.id, changed.enabled) == (first.id, False)
    assert "Always answer 5." in str(changed.messages)
    for judge in (rig.configs / "rules").glob("*.yaml"):
        assert (await rig.run("rules", "create", "--name", judge.stem, "--file", str(judge))).code == 0, judge.stem
    assert len(await rig.there("receipts")) == len(await rig.there("rewards_assistant")) == 17


async def test_pc5_fr9_a_copy_whose_filter_opik_can_not_say_stays_disabled_where_opik_judges(rig: Rig) -> None:
    edit(rig.configs / "verticals/receipts.yaml", "workspace", "live_judge: opik\nworkspace")
    file = rig.configs / "rules/greeting_quality.yaml"
    ran = await rig.run("rules", "create", "--name", "greeting_quality", "--file", str(file), "--json")
    assert ran.code == 0
    part = ran.json["verticals"][0]
    assert part["written"] == ["greeting_quality"]
    (left,) = part["left_alone"]
    assert "conversation (applies_to)" in left["reason"]
    assert "its copy stays disabled" in left["reason"]
    assert not (await rig.there())["greeting_quality"].enabled


async def test_pc5_ac7_a_named_rule_that_is_not_written_ends_with_1_and_says_why(rig: Rig) -> None:
    edit(rig.configs / QUALITY, "name: Response Quality Judge", f"name: {'x' * 151}")
    form = ("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY))
    ran = await rig.run(*form)
    assert (ran.code, "nothing to do" in ran.out, "151 characters" in ran.out) == (1, False, True)
    assert (await rig.run(*form, "--dry-run")).code == 1
    told = await rig.run(*form, "--json")
    assert (told.code, told.json["synced"]) == (1, False)
    assert [one["judge"] for part in told.json["verticals"] for one in part["failed"]] == ["response_quality"] * 2
    assert await rig.there() == {}


async def test_pc5_fr9_a_judge_that_its_file_switches_off_is_written_too(rig: Rig) -> None:
    """Opik holds a copy of each file; a disabled one fires on nothing, also where Opik judges."""
    edit(rig.configs / "verticals/receipts.yaml", "workspace", "live_judge: opik\nworkspace")
    file = rig.configs / "rules/ux_quality.yaml"
    edit(file, "enabled: true", "enabled: false")
    ran = await rig.run("rules", "create", "--name", "ux_quality", "--file", str(file))
    assert (ran.code, "nothing to do" in ran.out) == (0, False)
    assert [rule.enabled for rule in (await rig.there()).values()] == [False]


async def test_pc5_ac7_a_rule_that_one_vertical_alone_lacks_ends_with_1(rig: Rig) -> None:
    await rig.opik.fault(match=CREATE, status=422, body={"errors": ["code.model: unknown"]}, times=1)
    ran = await rig.run("rules", "create", "--name", "response_quality", "--file", str(rig.configs / QUALITY), "--json")
    assert [len(part["written"]) for part in ran.json["verticals"]] == [0, 1]
    assert (ran.code, ran.json["synced"]) == (1, False)
