"""The scenarios of remediation, served by a local API server to the real client (test plan of 004, points 5 and 6).

The server replays the recorded workflows of `examples/remediation/cases`, as an operator would run them.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import certifi
import orjson
import pytest

from evalcore.gates.golden import Evidenced
from evalcore.remediation.objects import Kinds, Object
from evalcore.remediation.sealing import ANSWERS, SEAL, Seals
from evalcore.scoring.items import Failed
from rampgate.ci_gate.inputs import read_dataset, read_outputs
from rampgate.cluster import open_cluster, stand_in
from rampgate.command import Context
from rampgate.console import Failure
from rampgate.input_files import BadFile
from rampgate.remediation import command
from rampgate.remediation.cases import LABEL, CaseRunner, NoCase
from rampgate.settings import Settings
from streams.cluster.kubernetes import Access, KubernetesCluster
from streams.cluster.twin import read_objects
from streams.cluster.watching import Proposals
from tests.kube_api import KubeApi, replayed
from tests.root import ROOT
from tests.waiting import come

FOLDER = ROOT / "examples" / "remediation"
GOLDEN = {item["id"]: item for item in read_dataset(FOLDER / "golden.jsonl").items}
STEPS_OF = {
    "completed": ("Completed", ["ran", "ran", "ran"]),
    "failed": ("Failed", ["ran", "ran", "absent"]),
    "oomkill-failed": ("Failed", ["ran", "broke", "absent"]),  # the sandbox ended, and no reasoning of the agent
    "denied": ("Denied", ["ran", "absent", "absent"]),
    "escalated": ("Escalated", ["ran", "ran", "ran"]),
    "analysis-only": ("Completed", ["ran", "absent", "absent"]),
}
OUTCOMES = ["completed", "failed", "denied", "escalated", "analysis-only"]
KEY = "a made-up key of some length"


def recorded() -> list[Sequence[Object]]:
    return [read_objects(path.read_text()) for path in sorted((FOLDER / "cases").glob("*.yaml"))]


@pytest.fixture(scope="module")
def workflows() -> list[Sequence[Object]]:
    return recorded()


@pytest.fixture
def api(workflows: list[Sequence[Object]], monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeApi]:
    api = KubeApi()
    api.operator = replayed(workflows)
    with api.serving():
        monkeypatch.setenv("RAMPGATE_CLUSTER_URL", api.url)
        monkeypatch.setenv("RAMPGATE_CONFIGS", str(ROOT / "configs"))
        yield api


@asynccontextmanager
async def running(api: KubeApi, wait: float = 20.0, left: list[str] | None = None) -> AsyncIterator[CaseRunner]:
    cluster = KubernetesCluster(Kinds(), Access(api.url, seconds=5.0))
    proposals = Proposals(cluster, Kinds(), ["openshift-lightspeed"])
    following = asyncio.create_task(proposals.run())
    yield CaseRunner(cluster, Kinds(), proposals, wait, (left if left is not None else []).append)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await cluster.close()


async def answered(api: KubeApi, case: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    async with running(api, **how) as one:
        answer = await one.answer(case)
    assert not isinstance(answer, Failed), answer.why
    return answer


def check_answer(answer: Mapping[str, Any], outcome: str) -> None:
    phase, steps = STEPS_OF[outcome]
    assert answer["proposal_phase"] == phase
    assert answer["proposal_steps"] == dict(zip(("analysis", "execution", "verification"), steps, strict=True))
    assert answer["proposal_missing"] == []
    for step, known in answer["proposal_steps"].items():
        attempts = answer["attempts"][step]
        assert attempts == len(answer["proposal_results"].get(step, []))
        assert (attempts > 0) == (known != "absent")
    assert answer["output"].startswith("#")
    assert answer["seconds"] >= 0


@pytest.mark.parametrize("provider", ["openai", "claude-vertex"])
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("scenario", ["oomkill", "crashloop-probe"])
async def test_each_outcome_of_each_scenario_is_read_by_the_real_client(
    api: KubeApi, scenario: str, outcome: str, provider: str
) -> None:
    """Done when 2; Remediation test plan 6: crashloop fixture, both providers."""
    told = f"{scenario}-{outcome}"
    check_answer(await answered(api, GOLDEN[f"{told}-{provider}"]), told if told in STEPS_OF else outcome)
    assert api.twin.objects == {}  # always deleted, with its children


async def test_oomkill_full_lifecycle(api: KubeApi) -> None:
    """Remediation test plan 5: apply, wait, read, delete, on the API."""
    answer = await answered(api, GOLDEN["oomkill-completed-openai"])

    name = answer["proposal"]["name"]
    made, read, *children, deleted = [one for one in api.requests if "?watch" not in one and "&watch" not in one]
    made, deleted = made.split("?")[0], deleted.split("?")[0]
    of = f"/apis/agentic.openshift.io/v1alpha1/namespaces/{answer['proposal']['namespace']}"
    assert [made, read, deleted] == [f"{verb} {of}/proposals/{name}" for verb in ("PATCH", "GET", "DELETE")]
    assert len(api.requests) == 7  # and one watch
    assert {one.split("/")[-2] for one in children} == {"analysisresults", "executionresults", "verificationresults"}
    assert re.fullmatch("rampgate-[0-9a-f]{16}", name)
    assert "OOMKilled" in answer["output"]


async def test_analysis_only(api: KubeApi) -> None:
    """Remediation test plan 5."""
    answer = await answered(api, GOLDEN["oomkill-analysis-only-openai"])

    assert set(answer["proposal_results"]) == {"analysis"}
    assert answer["proposal_phase"] == "Completed"


async def test_oomkill_claude_vertex(api: KubeApi) -> None:
    """Remediation test plan 5."""
    agents = []
    inner = api.operator

    def operator(applied: Object) -> Any:
        agents.append(applied["spec"]["analysis"]["agent"])
        return inner(applied)

    api.operator = operator
    check_answer(await answered(api, GOLDEN["oomkill-completed-claude-vertex"]), "completed")
    assert agents == ["claude-vertex"]


async def test_two_runs_of_a_case_at_once_do_not_meet(api: KubeApi) -> None:
    case = GOLDEN["oomkill-completed-openai"]
    first, second = await asyncio.gather(answered(api, case), answered(api, case))

    assert first["proposal"]["name"] != second["proposal"]["name"]
    check_answer(second, "completed")
    assert api.twin.objects == {}


async def test_a_workflow_that_does_not_end_is_read_as_it_is_and_deleted(api: KubeApi) -> None:
    api.operator = lambda applied: ()
    answer = await answered(api, GOLDEN["oomkill-completed-openai"], wait=0.3)

    assert answer["proposal_phase"] == "InProgress"
    assert [one["why"] for one in answer["proposal_missing"]] == ["not_ended"]
    assert api.twin.objects == {}


async def test_a_cancelled_run_deletes_its_proposal(api: KubeApi) -> None:
    api.operator = lambda applied: ()
    async with running(api) as one:
        asked = asyncio.create_task(one.answer(GOLDEN["oomkill-completed-openai"]))
        await come(lambda: api.twin.objects)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert api.twin.objects == {}


async def test_a_proposal_that_cannot_be_deleted_is_named_with_the_remedy(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[str] = []
    async with running(api, left=left) as one:
        delete = one.cluster.delete

        async def refused(kind: str, namespace: str, name: str) -> Any:
            api.faults[name] = "forbidden"
            return await delete(kind, namespace, name)

        monkeypatch.setattr(one.cluster, "delete", refused)
        answer = await one.answer(GOLDEN["oomkill-completed-openai"])

    assert not isinstance(answer, Failed)
    assert "is not deleted: forbidden" in left[0]
    assert "rampgate remediation clean openshift-lightspeed" in left[0]


@pytest.mark.parametrize("case", [{}, {"metadata": {"proposal": {"namespace": "a/b", "spec": {}}}}, {"metadata": []}])
async def test_a_case_without_a_proposal_is_refused(api: KubeApi, case: dict[str, Any]) -> None:
    async with running(api) as one:
        with pytest.raises(NoCase, match="namespace"):
            await one.answer(case)
    assert not [request for request in api.requests if request.startswith("PATCH")]


async def run_with(
    monkeypatch: pytest.MonkeyPatch, given: bytes = b"", **options: Any
) -> tuple[int, list[dict[str, Any]]]:
    """The command's exit code and the lines that it writes."""

    class Pipe(io.TextIOWrapper):
        pass

    out = Pipe(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", Pipe(io.BytesIO(given)))
    monkeypatch.setattr(sys, "stdout", out)
    code = await command.run(Context.of(), **options)
    monkeypatch.undo()
    return code, [json.loads(line) for line in out.buffer.getvalue().splitlines()]  # type: ignore[attr-defined]


async def test_as_a_suites_command_it_reads_a_case_and_writes_its_answer(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = GOLDEN["crashloop-probe-completed-openai"]
    asked = orjson.dumps({"input": case["input"], "metadata": case["metadata"]})
    code, (answer,) = await run_with(monkeypatch, asked)

    assert code == 0
    check_answer(answer, "completed")


async def test_cases_are_written_as_gate_run_reads_them_each_with_our_seal(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", KEY)
    code, lines = await run_with(monkeypatch, cases=FOLDER / "golden.jsonl")

    assert code == 0
    assert len(lines) == 20
    file, ours = tmp_path / "outputs.jsonl", Seals.of(ANSWERS, KEY)
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert all(isinstance(answer, Evidenced) for answer in read_outputs(file, ours).values())
    assert set(read_outputs(file, ours)) == {item["metadata"]["id"] for item in GOLDEN.values()}

    # The answer to another case, or a word that was changed, is no evidence of ours.
    lines[0]["proposal_phase"] = "Completed" if lines[0]["proposal_phase"] != "Completed" else "Failed"
    lines[1]["id"], lines[2]["id"] = lines[2]["id"], lines[1]["id"]
    del lines[3][SEAL]
    file.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    assert [isinstance(answer, Evidenced) for answer in read_outputs(file, ours).values()] == [False] * 4 + [True] * 16
    assert api.twin.objects == {}


async def test_a_case_that_fails_is_a_line_with_its_error_and_costs_no_other(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inner = api.operator

    def operator(applied: Object) -> Any:
        if "crashloop" in applied["spec"]["request"]:
            api.faults[applied["metadata"]["name"]] = "forbidden"
        return inner(applied)

    api.operator = operator
    cases = [GOLDEN[f"{scenario}-completed-openai"] for scenario in ("crashloop-probe", "oomkill")]
    file = tmp_path / "cases.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, cases)))
    code, lines = await run_with(monkeypatch, cases=file)

    assert code == 1
    assert "can't be read: forbidden" in lines[0]["error"]
    check_answer(lines[1], "completed")
    assert [type(one) for one in read_outputs_of(lines, tmp_path)] == [Failed, dict]


async def test_a_file_with_a_case_that_names_no_proposal_is_refused_whole(api: KubeApi, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(orjson.dumps({"id": "odd", "input": "x", "metadata": {}}))
    with pytest.raises(Failure, match=r"odd: metadata\.proposal: must be"):
        await command.run(Context.of(), cases=file)
    assert api.requests == []


async def test_a_file_without_a_case_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_text("\n")
    with pytest.raises(Failure, match="must have a case, got none"):
        await command.run(Context.of(), cases=file)


def read_outputs_of(lines: Sequence[Mapping[str, Any]], folder: Path) -> list[Any]:
    (folder / "outputs.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return [*read_outputs(folder / "outputs.jsonl").values()]


async def test_an_unreachable_cluster_asks_a_suite_to_try_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAMPGATE_CLUSTER_URL", "http://127.0.0.1:9")
    code, lines = await run_with(monkeypatch, orjson.dumps(GOLDEN["oomkill-completed-openai"]))

    assert (code, lines) == (os.EX_TEMPFAIL, [])
    assert "unreachable" in capsys.readouterr().err


async def test_a_killed_run_is_cleaned_up_by_label_and_nothing_else_is(api: KubeApi) -> None:
    namespace = "openshift-lightspeed"
    ours, other = (
        {"kind": "Proposal", "metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {}}
        for name, labels in (("rampgate-1", dict([LABEL])), ("of-a-user", {}))
    )
    api.operator = lambda applied: ()
    for one in (ours, other):
        api.apply(one)

    found = await command.clean(Context.of(), [namespace])
    assert found["deleted"] == [f"{namespace}/rampgate-1"]
    assert [place[2] for place in api.twin.objects] == ["of-a-user"]
    assert (await command.clean(Context.of(), [namespace]))["deleted"] == []  # twice is harmless

    api.faults[f"watch {namespace}"] = "forbidden"
    api.apply(ours)
    api.faults["rampgate-1"] = "forbidden"
    refused = await command.clean(Context.of(), [namespace])
    assert refused.failure is not None
    assert f"{namespace}/rampgate-1: is not deleted: forbidden" in str(refused.failure)


async def test_a_terminated_run_deletes_its_proposal(api: KubeApi, tmp_path: Path) -> None:
    """A suite's runner, or a CI job's end, sends SIGTERM first."""
    api.operator = lambda applied: ()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "rampgate", "remediation", "run", cwd=tmp_path, stdin=asyncio.subprocess.PIPE,
        env={**os.environ, "RAMPGATE_CLUSTER_URL": api.url},
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(orjson.dumps(GOLDEN["oomkill-completed-openai"]))
    process.stdin.close()
    await come(lambda: api.twin.objects)
    process.send_signal(signal.SIGTERM)

    assert await process.wait() != 0
    assert api.twin.objects == {}


def document(found: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(orjson.dumps(dict(found)))  # type: ignore[no-any-return]


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_what_show_reads_of_the_cluster_it_reads_of_its_recording(
    api: KubeApi, workflows: list[Sequence[Object]], tmp_path: Path, outcome: str
) -> None:
    """`--record` and `--from`; and the document that the contract names."""
    case = f"crashloop-probe-{outcome}-openai"
    for one in next(of for of in workflows if of[0]["metadata"]["name"] == case):
        api.apply(one)
    file = tmp_path / "recorded.yaml"
    live = await command.show(Context.of(), f"openshift-lightspeed/{case}", record=file)
    again = await command.show(Context.of(), source=file)

    assert document(live) == document(again)
    assert list(live) == ["phase", "terminal", "proposal_results", "steps", "missing", "summary"]
    assert (live["phase"], [*live["steps"].values()]) == STEPS_OF[outcome]
    assert live["terminal"] is True
    assert (live.exit_code, live.failure) == (0, None)
    assert command.show_report(live).result == live["phase"]


async def test_show_applies_the_rule_of_replaced(tmp_path: Path) -> None:
    source = FOLDER / "cases" / "oomkill-completed-openai.yaml"
    created = read_objects(source.read_text())[0]["metadata"]["creationTimestamp"]
    year = int(created[:4])
    told = await command.show(Context.of(), source=source, ended_at=created.replace(str(year), str(year - 1), 1))
    assert [one["why"] for one in told["missing"]] == ["replaced"]
    assert told["phase"] == "InProgress"
    assert told["proposal_results"] == {}

    same = await command.show(Context.of(), source=source, ended_at=created)
    assert same["missing"] == []
    with pytest.raises(Failure, match="--ended-at"):
        await command.show(Context.of(), source=source, ended_at="soon")


async def test_show_takes_no_proposal_that_does_not_say_when_it_was_created_for_a_traces(tmp_path: Path) -> None:
    text = (FOLDER / "cases" / "oomkill-completed-openai.yaml").read_text()
    undated = tmp_path / "undated.yaml"
    undated.write_text(text.replace("creationTimestamp", "madeAt"))
    told = await command.show(Context.of(), source=undated, ended_at="2026-11-20T08:00:00Z")
    assert [one["why"] for one in told["missing"]] == ["malformed"]
    assert told["phase"] == "InProgress"


async def test_a_record_of_nothing_replaces_no_earlier_one(tmp_path: Path) -> None:
    kept = tmp_path / "fix.yaml"
    kept.write_text("an earlier record")
    source = FOLDER / "cases" / "oomkill-completed-openai.yaml"
    found = await command.show(Context.of(), "shop/gone", source=source, record=kept)
    assert found.failure is not None
    assert kept.read_text() == "an earlier record"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: A\n---\nkind: B\nmetadata: {name: b}\n", "document 1: must be an object with kind"),
        ("a: &x 1\nb: *x\n", r"line 2: must be without aliases"),
        ("a: 1\nb: \x07\n", "no YAML: .*control characters"),
        (
            "kind: A\nmetadata: {namespace: n, name: a}\n---\nkind: A\nmetadata: {name: a, namespace: n}\n",
            "document 2: must be there once, got A n/a of document 1 again",
        ),
    ],
)
def test_what_is_wrong_in_a_file_of_objects_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_objects(text)


async def test_a_file_of_the_cluster_settings_that_is_none_is_named(tmp_path: Path) -> None:
    for name in ("cluster_token_file", "cluster_ca_file"):
        settings = Settings(cluster_url="https://127.0.0.1:1", **{name: tmp_path / "none"})
        with pytest.raises(Failure, match=f"RAMPGATE_{name.upper()}: must be a file, got .*none"):
            open_cluster(settings)


def test_a_file_of_objects_in_another_encoding_is_named_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "fix.yaml"
    file.write_bytes("kind: Päckchen".encode("latin-1"))
    with pytest.raises(BadFile, match=r"fix.yaml: must be UTF-8, got other bytes; save the file as UTF-8"):
        stand_in(file)


def test_a_ca_file_is_found_from_where_the_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is one from there, and not from a kubeconfig."""
    monkeypatch.chdir(tmp_path)
    Path("ca.pem").write_text(Path(certifi.where()).read_text())
    open_cluster(Settings(cluster_url="https://127.0.0.1:1", cluster_ca_file=Path("ca.pem")))


def test_a_kubeconfig_without_a_cluster_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config"
    config.write_text("apiVersion: v1\nkind: Config\ncurrent-context: here\n")
    monkeypatch.setenv("KUBECONFIG", str(config))
    with pytest.raises(Failure, match=r"no cluster to ask: the kubeconfig lacks .clusters.; set RAMPGATE_CLUSTER_URL"):
        open_cluster(Settings())


@pytest.mark.parametrize("kinds", [{"proposal": "../x"}, {"group": "a/b"}, {"version": "v1?x"}, {"analysis": ""}])
def test_a_kind_that_can_be_no_part_of_a_url_is_refused(kinds: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(kinds))}: must be "):
        Settings(cluster_kinds=kinds)


FAULTS = [
    ("forbidden", "forbidden"), ("gone", "unreachable"), ("throttled", "unreachable"), ("slow", "timed_out"),
    ("dies", "unreachable"), ("truncated", "malformed"), ("huge", "too_large"),
]  # fmt: skip


@pytest.mark.parametrize(("fault", "why"), FAULTS)
async def test_a_fault_of_one_child_is_said_and_the_rest_is_read(
    api: KubeApi, workflows: list[Sequence[Object]], monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    """Done when 4."""
    monkeypatch.setenv("RAMPGATE_CLUSTER_TIMEOUT_SECONDS", "1")
    name = "oomkill-completed-openai"
    first, *children = next(of for of in workflows if of[0]["metadata"]["name"] == name)
    for one in (first, *children):
        api.apply(one)
    lost = next(one for one in children if one["kind"] == "ExecutionResult")
    api.faults[lost["metadata"]["name"]] = fault

    told = await command.show(Context.of(), f"openshift-lightspeed/{name}")

    assert told["missing"] == [{"what": f"ExecutionResult/{lost['metadata']['name']}", "why": why}]
    assert told["steps"] == {"analysis": "ran", "execution": "unread", "verification": "ran"}
    assert told["phase"] == "Completed"


@pytest.mark.parametrize(("fault", "why"), FAULTS)
async def test_a_proposal_that_cannot_be_read_ends_with_exit_code_2_and_says_why(
    api: KubeApi, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    """Done when 4."""
    monkeypatch.setenv("RAMPGATE_CLUSTER_TIMEOUT_SECONDS", "1")
    api.faults["fix"] = fault

    told = await command.show(Context.of(), "shop/fix")

    assert told["missing"] == [{"what": "Proposal/fix", "why": why}]
    assert told["terminal"] is False
    assert f"shop/fix: can't be read: {why}" in str(told.failure)


async def test_show_says_what_to_do_where_the_name_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "two.yaml"
    both = [FOLDER / "cases" / f"oomkill-{outcome}-openai.yaml" for outcome in ("failed", "denied")]
    file.write_text("\n---\n".join(path.read_text() for path in both))
    with pytest.raises(Failure, match="NAMESPACE/NAME: must be there, unless --from has one Proposal; it has 2"):
        await command.show(Context.of(), source=file)
    with pytest.raises(Failure, match="shop/fix-oom"):
        await command.show(Context.of(), "fix-oom", source=file)
    told = await command.show(Context.of(), "openshift-lightspeed/oomkill-denied-openai", source=file)
    assert told["phase"] == "Denied"
