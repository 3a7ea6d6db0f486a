"""PF-9 FR-9, §5.7, R-5, Decision 7: `rampgate optimize` proposes prompt forks as drafts for people, and merges none."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
import yaml

from rampgate.local.model.judging import RULE
from tests.unit.rampgate.optimisation.optimise_rig import (
    BETTER,
    HELD_OUT,
    ITEMS,
    PROMPT,
    SHOWN,
    OptimiseRig,
    better,
    item,
)


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def entry(rig: OptimiseRig, candidate: str) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((rig.drafts / f"{candidate}.yaml").read_text())
    return found


def texts(rig: OptimiseRig) -> str:
    """All that a run leaves for people and for git."""
    return "\n".join(path.read_text() for path in rig.drafts.iterdir() if path.is_file())


def test_a_fork_that_improves_a_category_is_a_draft_with_its_numbers(rig: OptimiseRig) -> None:
    found = rig.run()
    (proposal,) = found["proposals"]
    assert (proposal["outcome"], proposal["kept"]) == ("draft", True)
    assert {one["category"]: (one["before"], one["after"]) for one in proposal["measured"]["categories"]} == {
        "general_qa": (0.5, 1.0), "shop_returns": (0.5, 1.0)
    }  # fmt: skip
    assert all(one["p_adjusted"] <= 0.05 and one["improved"] for one in proposal["measured"]["categories"])
    assert proposal["diff"].endswith(f"+{RULE}")
    draft = entry(rig, found["drafts"][0])
    assert draft["status"] == "draft"
    assert draft["agent_definition"] == {
        "agent_id": "chat", "agent_version": "3", "prompt": BETTER, "tools": ["search"], "tuning": {"top_p": 1}
    }  # fmt: skip
    assert found["cost"]["candidate_calls"] == 4 * len(HELD_OUT), (
        "a draft is measured once more, and so is what it beats"
    )
    assert found["cost"]["model_calls"] == len(rig.heard)


def test_nothing_outside_the_holding_directory_changes(rig: OptimiseRig) -> None:
    """PF-9 Decision 7: the loop has no way to merge."""
    before = tree(rig.folder)
    rig.run()
    after = tree(rig.folder)
    inside = str(rig.drafts.relative_to(rig.folder))
    assert {name for name in after if not name.startswith(f"{inside}/")} == set(before)
    assert {name: after[name] for name in before} == before
    assert (rig.drafts / ".answers/.gitignore").read_text() == "*\n"
    rig.run("--out", rig.folder / "elsewhere")
    assert {name for name in tree(rig.folder) if not name.startswith("elsewhere/")} == set(after)


def test_no_byte_of_a_held_out_item_reaches_the_meta_llm(rig: OptimiseRig) -> None:
    rig.run()
    (asked,) = rig.asked_for_prompts
    sent = json.dumps(asked, ensure_ascii=False)
    shown = [number for number in range(ITEMS) if item(number)["input"] in sent]
    assert shown
    assert set(shown) <= set(SHOWN)
    for number in HELD_OUT:
        assert f"no idea {number}\\" not in sent
        assert f"reference {number}" not in sent


def test_only_failing_items_of_categories_between_floor_and_threshold_are_shown(rig: OptimiseRig) -> None:
    rig.results(lambda judge, number: 5 if number % 4 < 2 else 1 if number % 2 == 0 and judge == "helpfulness" else 3)
    rig.results(
        lambda judge, number: (
            1 if judge in ("refusal", "honesty") else (1 if number % 2 == 0 else 5 if number % 4 == 1 else 3)
        )
    )
    found = rig.run()
    standing = {one["category"]: one["standing"] for one in found["categories"]}
    assert standing == {"general_qa": "people", "shop_returns": "optimise"}
    sent = json.dumps(rig.asked_for_prompts)
    shown = {number for number in range(ITEMS) if item(number)["input"] in sent}
    assert shown
    assert {number % 4 for number in shown} == {3}


def test_no_more_drafts_a_week_than_the_cap_and_the_best_ones(rig: OptimiseRig) -> None:
    """PF-9 R-5: people are not buried."""
    forks = [f"{PROMPT}{RULE}\nVariant {word}.\n" for word in ("one", "two", "three")]
    rig.quality = lambda prompt, number: 0.9 if "two" in prompt else 0.75 if RULE in prompt else 0.25
    rig.proposes(*forks)
    found = rig.run("--most-a-week", 1)
    assert [one["kept"] for one in found["proposals"]] == [False, True, False]
    assert "the week has its 1 drafts" in found["proposals"][0]["why"]
    assert len(list(rig.drafts.glob("2026-*.yaml"))) == 1
    asked = len(rig.heard)
    again = rig.run("--most-a-week", 1)
    assert again["reason"] == "shop has its 1 drafts of 2026-W47: review them, or wait for next week"
    assert len(rig.heard) == asked


def test_the_cap_counts_also_drafts_that_were_deleted_and_begins_anew_each_week(
    rig: OptimiseRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PF-9 R-5."""
    (first,) = rig.run("--most-a-week", 1)["drafts"]
    (rig.drafts / f"{first}.yaml").unlink()
    assert rig.run("--most-a-week", 1)["proposals"] == []
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: date(2026, 11, 23))
    rig.proposes(f"{PROMPT}{RULE} And smile.\n")
    rig.results(lambda judge, number: 3 if judge in ("helpfulness", "brevity") and number else 1)
    (second,) = rig.run("--most-a-week", 1)["drafts"]
    assert second.startswith("2026-W48-shop-")


def test_what_was_proposed_before_is_not_proposed_again_however_it_is_set(rig: OptimiseRig) -> None:
    rig.run()
    report = tree(rig.drafts)
    rig.proposes(BETTER.upper().replace("{SHOP}", "{shop}"), f"{BETTER}\n\n")
    again = rig.run()
    assert [one["kept"] for one in again["proposals"]] == [False]
    assert again["proposals"][0]["why"].startswith("decided before: ")
    assert {name for name in tree(rig.drafts) if not name.startswith(".answers")} == {
        name for name in report if not name.startswith(".answers")
    }


@pytest.mark.parametrize("beside", [{"tools": []}, {"model": "gpt-9"}, {"tuning": {"top_p": 0.1}}])
def test_a_proposal_that_changes_more_than_the_prompt_is_refused(rig: OptimiseRig, beside: dict[str, object]) -> None:
    rig.proposes(BETTER, **beside)
    (proposal,) = rig.run(code=1)["proposals"]
    assert proposal["outcome"] == "refused"
    assert "proposes more than a prompt" in proposal["why"]
    assert list(rig.drafts.glob("2026-*")) == []


def test_a_fork_that_newly_fails_a_safety_judge_on_one_item_is_refused(rig: OptimiseRig) -> None:
    one = HELD_OUT[3]
    rig.quality = lambda prompt, number: 0.96 if RULE not in prompt else 0.0 if number == one else 1.0
    (proposal,) = rig.run(code=1)["proposals"]
    assert proposal["outcome"] == "refused"
    assert f"newly fails i{one}" in proposal["why"]
    assert list(rig.drafts.glob("2026-*")) == []


def test_a_fork_that_copies_an_item_is_refused_and_quoted_nowhere(rig: OptimiseRig) -> None:
    for number in (SHOWN[0], HELD_OUT[0]):
        rig.proposes(f"{PROMPT}{RULE} Asked '{item(number)['input']}', say {number}.\n")
        rig.drafts = rig.folder / f"of-{number}"
        (proposal,) = rig.run("--out", rig.drafts, code=1)["proposals"]
        assert proposal["why"].startswith("it copies ")
        assert proposal["diff"] == ""
        assert item(number)["input"] not in texts(rig)


def test_a_rationale_that_quotes_an_item_is_left_out(rig: OptimiseRig) -> None:
    rig.proposes(BETTER, rationale=f"They ask {item(SHOWN[0])['input']}, and it is vague.")
    found = rig.run()
    assert found["drafts"]
    assert found["proposals"][0]["rationale"] == "(left out: it quotes an item)"
    assert item(SHOWN[0])["input"] not in texts(rig)


def test_a_fork_that_improves_nothing_is_not_put_before_people(rig: OptimiseRig) -> None:
    rig.quality = lambda prompt, number: 0.5
    (proposal,) = rig.run(code=1)["proposals"]
    assert (proposal["outcome"], proposal["why"]) == ("refused", "the held-out items show no improvement")


def test_a_candidate_that_takes_no_prompt_leaves_a_fork_unmeasured_and_says_so(rig: OptimiseRig) -> None:
    rig.takes_prompts = False
    found = rig.run()
    (proposal,) = found["proposals"]
    assert proposal["outcome"] == "unmeasured"
    assert "prompt_sha256" in proposal["why"]
    assert entry(rig, found["drafts"][0])["status"] == "unmeasured"
    assert len(rig.agent.seen) == 1


def test_an_unmeasured_fork_is_measured_once_there_is_a_candidate(rig: OptimiseRig) -> None:
    (first,) = rig.run(candidate=False)["drafts"]
    assert entry(rig, first)["status"] == "unmeasured"
    (second,) = rig.run("--most-a-week", 1)["drafts"]
    assert (second, entry(rig, second)["status"]) == (first, "draft")
    assert len(rig.asked_for_prompts) == 1


def test_an_unmeasured_fork_that_turns_out_bad_is_taken_away(rig: OptimiseRig) -> None:
    (first,) = rig.run(candidate=False)["drafts"]
    rig.quality = lambda prompt, number: 0.5
    rig.run(code=1)
    assert not (rig.drafts / f"{first}.yaml").exists()


def test_too_few_held_out_items_leave_a_fork_unmeasured(rig: OptimiseRig) -> None:
    rig.dataset.write_text("".join(rig.dataset.read_text().splitlines(keepends=True)[:24]))
    lines = (rig.folder / "scores.jsonl").read_text().splitlines(keepends=True)
    rig.results(lambda judge, number: 3 if judge in ("helpfulness", "brevity") else 1)
    kept = [line for line in lines if int(json.loads(line)["item_id"][1:]) < 24]
    (rig.folder / "scores.jsonl").write_text("".join(kept))
    (proposal,) = rig.run()["proposals"]
    assert proposal["outcome"] == "unmeasured"
    assert "held-out items of a category tell too little" in proposal["why"]


@pytest.mark.parametrize(
    "where",
    [
        "rampgate.optimisation.loop.read_variants",  # the meta-LLM is being asked
        "rampgate.optimisation.forks.score_gate",  # the first item is answered
        "rampgate.optimisation.loop.decided",  # all is scored
        "rampgate.optimisation.command.report.draft",  # nothing is written
        "rampgate.optimisation.holding.to_builtins",  # the draft is written, its line is not
        "rampgate.optimisation.command.html",  # half of the report is written
    ],
)
def test_a_run_that_was_killed_asks_nothing_again_and_ends_with_the_same_files(rig: OptimiseRig, where: str) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    whole = rig.drafts.with_name("whole")
    rig.run("--out", whole)
    asked = len(rig.heard), len(rig.agent.seen)
    rig.heard.clear()
    rig.agent.seen.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where, killed)
        with pytest.raises(Killed):
            rig.run()
    rig.run()
    again = 1 if where.endswith("read_variants") else 0  # the call that was under way
    assert (len(rig.heard) - again, len(rig.agent.seen)) == asked
    kinds = ("2*", "ledger.jsonl")
    assert {path.name: path.read_bytes() for kind in kinds for path in rig.drafts.glob(kind)} == {
        path.name: path.read_bytes() for kind in kinds for path in whole.glob(kind)
    }


def test_a_candidate_that_failed_on_the_way_is_asked_for_the_rest_alone(rig: OptimiseRig) -> None:
    down = HELD_OUT[5:]
    says = rig.says
    rig.agent.says = lambda body, count: (
        (400, {}) if any(item(n)["input"] == body["input"] for n in down) else says(body, count)
    )
    (proposal,) = rig.run(code=1)["proposals"]
    assert proposal["outcome"] == "unscored"
    assert not list(rig.drafts.glob("2*.yaml"))
    rig.agent.seen.clear()
    rig.agent.says = says
    assert rig.run()["drafts"]
    assert len(rig.agent.seen) == 2 * len(down) + 2 * len(HELD_OUT), "and once more of all, for the draft"


def test_answers_of_another_run_are_not_kept(rig: OptimiseRig) -> None:
    rig.run()
    (first,) = (path for path in (rig.drafts / ".answers/shop").iterdir() if path.is_dir())
    rig.results(lambda judge, number: 3 if judge in ("helpfulness", "brevity") and number else 1)
    rig.quality = better
    rig.run()
    assert not first.exists()


def test_a_prompt_component_is_forked_as_a_component(rig: OptimiseRig) -> None:
    component = rig.folder / "greeting.xml"
    component.write_text(
        '<component id="greeting" version="1.2">\n  <prompt>\n    <rule>Be kind &amp; brief.</rule>\n  </prompt>\n'
        "</component>\n"
    )
    rig.definition = component
    rig.proposes(f"\n    <rule>Be kind &amp; brief.</rule>\n    <rule>{RULE}</rule>\n  ", "<rule>open")
    found = rig.run()
    assert [one["outcome"] for one in found["proposals"]] == ["draft", "refused"]
    draft = entry(rig, found["drafts"][0])
    written = (rig.drafts / str(draft["component"])).read_text()
    assert f"<rule>{RULE}</rule>" in written
    assert 'version="1.2-draft.' in written
    assert {body["prompt_component"] for body in rig.agent.seen} == {"greeting"}


def test_the_report_names_judges_of_categories_that_are_not_fine(rig: OptimiseRig) -> None:
    rig.results(lambda judge, number: 1 if judge in ("refusal", "honesty") else 3 if number % 2 else 5)
    rig.run()
    (report,) = rig.drafts.glob("report-*.md")
    rows = [line for line in report.read_text().splitlines() if line.startswith("| ")]
    standing = [row.split(" | ")[0:3] for row in rows[2:5]]
    assert standing == [
        ["| shop\\_returns", "optimise", "brevity"],
        ["| shop\\_returns", "optimise", "helpfulness"],
        ["| general\\_qa", "fine", ""],
    ]


def test_the_report_is_markdown_and_a_page_that_loads_nothing(rig: OptimiseRig) -> None:
    rig.proposes(f"{BETTER}<script>alert(1)</script> ```\n")
    rig.run()
    (text,), (page,) = ([*rig.drafts.glob(f"report-*.{kind}")] for kind in ("md", "html"))
    assert "improved" in text.read_text()
    assert "````diff" in text.read_text()
    assert "<script>" not in page.read_text()
    assert "default-src 'none'" in page.read_text()


def test_a_gain_that_fresh_answers_do_not_show_is_no_draft(rig: OptimiseRig) -> None:
    """Of some forks the best by chance is chosen: its gain is too high by the choice."""
    asked: Counter[tuple[str, int]] = Counter()

    def lucky_once(prompt: str, number: int) -> float:
        asked[prompt, number] += 1
        return 1.0 if RULE in prompt and asked[prompt, number] == 1 else 0.5

    rig.quality = lucky_once
    rig.proposes(BETTER)
    found = rig.run(code=1)
    (one,) = found["proposals"]
    assert (one["outcome"], found["drafts"]) == ("refused", [])
    assert one["why"] == "fresh answers show no gain in general_qa, shop_returns"
    assert [change["delta"] for change in one["measured"]["categories"]] == [0.0, 0.0], "the fresh figures are told"


def test_a_fork_that_fresh_answers_find_unsafe_is_no_draft(rig: OptimiseRig) -> None:
    asked: Counter[tuple[str, int]] = Counter()

    def harmful_later(prompt: str, number: int) -> float:
        asked[prompt, number] += 1
        if RULE not in prompt:
            return 0.5
        return 0.0 if asked[prompt, number] == 2 and number == HELD_OUT[0] else 1.0

    rig.quality = harmful_later
    rig.proposes(BETTER)
    (one,) = rig.run(code=1)["proposals"]
    assert one["outcome"] == "refused"
    assert one["why"].startswith("on fresh answers: the safety judge")
