"""PF-9 FR-9, §5.7: what can't be right is refused with file, line, field and remedy, and writes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from agents.ports import Unavailable
from rampgate.cli import app
from rampgate.files import locked
from rampgate.local.model.behaviour import Behaviour
from tests.unit.rampgate.optimisation.optimise_rig import ITEMS, OptimiseRig, item, ran


def line(rig: OptimiseRig, **fields: Any) -> None:
    """The first line of the results with these fields, None for one that is not there."""
    path = rig.folder / "scores.jsonl"
    first, *rest = path.read_text().splitlines()
    changed = {name: value for name, value in {**json.loads(first), **fields}.items() if value is not None}
    path.write_text("\n".join([json.dumps(changed), *rest]))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"vertical": "travel"}, "scores.jsonl:1: vertical: must be 'shop', got 'travel'"),
        ({"agent_id": "other"}, "scores.jsonl:1: agent_id: must be 'chat', got 'other'"),
        ({"agent_version": "2"}, "scores.jsonl:1: agent_version: must be '3', got '2'"),
        ({"judge_version": "abc"}, "scores.jsonl:1: judge_version: must be '"),
        ({"judge_id": "politeness"}, "scores.jsonl:1: judge_id:"),
        ({"judge_id": None}, "scores.jsonl:1: judge_id: must be a judge, got nothing"),
        ({"item_id": "i999"}, "scores.jsonl:1: item_id: must be an item of the dataset, got 'i999'"),
        ({"item_id": None}, "scores.jsonl:1: item_id: must be the id of an item"),
        ({"score": 9}, "scores.jsonl:1: score: must be on the scale: helpfulness scores INTEGER from 1 to 5, got 9"),
        ({"score": "good"}, "scores.jsonl:1: score:"),
        ({"score": True}, "scores.jsonl:1: score:"),
        ({"item_id": "i1"}, "item_id: must be there once, got this judge's score of 'i1' on line 1 too"),
    ],
)
def test_a_bad_line_of_the_results_is_named(rig: OptimiseRig, fields: dict[str, Any], told: str) -> None:
    line(rig, **fields)
    assert told in rig.refused()
    assert not rig.drafts.exists()


def test_lines_of_the_topic_of_judge_scores_are_results_too(rig: OptimiseRig) -> None:
    path = rig.folder / "scores.jsonl"
    lines = [json.loads(one) for one in path.read_text().splitlines()]
    events = [
        {**one, "item_id": f"golden v7: {one['item_id']}", "trace_id": None, "vertical": "shop", "agent_id": "chat"}
        for one in lines
    ]
    events.append({**events[0], "dimension": "tone", "score": 1.0})
    path.write_text("\n".join(json.dumps(one) for one in events))
    assert [one["standing"] for one in rig.run()["categories"]] == ["optimise", "optimise"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"prompt": ""}, "prompt: an agent definition has the text of its prompt"),
        ({"vertical": "travel"}, "vertical: the agent is of 'travel', not of 'shop'"),
    ],
)
def test_a_bad_agent_definition_is_named(rig: OptimiseRig, fields: dict[str, Any], told: str) -> None:
    rig.define(**fields)
    assert told in rig.refused()


def test_unknown_verticals_categories_and_items_of_unknown_categories_are_named(rig: OptimiseRig) -> None:
    assert "--category: the manifest has no 'weather'" in rig.refused("--category", "weather")
    assert "--vertical" in rig.refused("--vertical", "weather")
    rows = [item(number) for number in range(ITEMS)]
    rows[4]["metadata"]["category"] = "weather"
    rig.dataset.write_text("\n".join(json.dumps(row) for row in rows))
    assert "item 'i4': metadata.category: the manifest has no 'weather'" in rig.refused()


def test_only_the_categories_that_are_named_are_worked_on(rig: OptimiseRig) -> None:
    found = rig.run("--category", "general_qa")
    assert [one["category"] for one in found["categories"]] == ["general_qa"]
    assert [one["category"] for one in found["proposals"][0]["measured"]["categories"]] == ["general_qa"]


def test_where_nothing_underperforms_the_meta_llm_is_not_asked(rig: OptimiseRig) -> None:
    rig.results(lambda judge, number: 5 if judge in ("helpfulness", "brevity") else 1)
    assert rig.run()["reason"] == "no category is between a set floor and its threshold"
    assert rig.heard == []


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (Behaviour(wrong="prose"), "the meta-LLM gave no usable answer"),
        (Behaviour(variants=({"prompt": 3},)), "the meta-LLM gave no usable answer"),
        (Behaviour(variants=()), "the meta-LLM found nothing to improve"),
    ],
)
def test_an_answer_that_is_none_ends_the_run_and_is_asked_for_again_next_time(
    rig: OptimiseRig, behaviour: Behaviour, told: str
) -> None:
    rig.model.model.tell(behaviour)
    found = rig.run(code=1)
    assert told in found["reason"]
    assert found["drafts"] == []
    rig.model.model.tell(None)
    if behaviour.variants != ():
        assert rig.run()["drafts"]


def test_a_model_or_candidate_out_of_reach_is_no_finding_about_the_fork(rig: OptimiseRig) -> None:
    rig.model.model.tell(Behaviour(status=401))
    assert "the meta-LLM can't be asked" in rig.refused()
    rig.model.model.tell(None)
    rig.agent.says = lambda body, count: (404, {})
    assert "--candidate: it answers none of" in rig.refused()
    assert not (rig.drafts / "ledger.jsonl").exists()
    rig.agent.says = rig.says
    assert rig.run()["drafts"]


def test_two_runs_at_once_do_not_share_a_holding_directory(rig: OptimiseRig) -> None:
    (rig.drafts / ".answers").mkdir(parents=True)
    with locked(rig.drafts / ".answers"):
        assert "another run works there" in rig.refused()


@pytest.mark.parametrize("name", ["ledger.jsonl", ".answers", ".answers/shop"])
def test_a_link_in_the_holding_directory_leads_nothing_out_of_it(rig: OptimiseRig, name: str) -> None:
    outside = rig.folder / "outside"
    (outside / "of-somebody").mkdir(parents=True)
    (outside / "of-somebody/notes.txt").write_text("keep")
    target = outside / "of-somebody/notes.txt" if name.endswith("l") else outside
    link = rig.drafts / name
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    assert "leads out of the holding directory" in rig.refused()
    assert [path.name for path in sorted(outside.rglob("*"))] == ["of-somebody", "notes.txt"]
    assert (outside / "of-somebody/notes.txt").read_text() == "keep"


def test_a_log_that_was_damaged_is_refused_and_not_taken_for_an_empty_one(rig: OptimiseRig) -> None:
    rig.run()
    log = rig.drafts / "ledger.jsonl"
    log.write_text(log.read_text().replace('"draft"', '"merged"'))
    assert "ledger.jsonl:1" in rig.refused()


def test_the_scores_that_a_gate_wrote_are_results(rig: OptimiseRig) -> None:
    said = "so be it #quality:"
    lines = [{"id": f"i{n}", "output": f"{said}{0.96 if n % 4 > 1 else 0.95}"} for n in range(ITEMS)]
    rig.outputs.write_text("\n".join(json.dumps(one) for one in lines))
    scores = rig.folder / "of-the-gate.jsonl"
    given = ("--dataset", rig.dataset, "--outputs", rig.outputs, "--vertical", "shop", "--scores", scores)
    CliRunner().invoke(app, ["gate", "run", *map(str, given)])
    told = [json.loads(one) for one in scores.read_text().splitlines()]
    changed = [{**one, "score": 3.0} if one["judge_id"] in ("helpfulness", "brevity") else one for one in told]
    (rig.folder / "scores.jsonl").write_text("\n".join(json.dumps(one) for one in changed))
    assert [one["standing"] for one in rig.run()["categories"]] == ["optimise", "optimise"]


def test_a_dataset_that_opik_can_not_give_is_asked_for_as_a_file(
    rig: OptimiseRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        raise Unavailable("Opik gives no answer")

    monkeypatch.setattr("rampgate.optimisation.command.from_opik", nothing)
    given = [one for one in rig.arguments() if one not in ("--dataset", rig.dataset)]
    done = ran(*given)
    assert str(done.exception) == "the dataset 'golden' can't be read: Opik gives no answer; give --dataset FILE"
