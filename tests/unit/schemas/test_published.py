"""The published contracts are up to date, their examples hold, and they are as tolerant as our own codecs. The
published example of a trace can be judged as it stands: who makes traces by it has them scored."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from agents import rerolls, thumbs, traces
from agents.policy import Policy
from evalcore.gates.decision import Evidence, Judged, decide
from evalcore.gates.limits import Limits
from evalcore.gates.messages import ramp_command
from evalcore.gates.regression import Breach, Event, Response, Step
from evalcore.gates.requests import InvalidRequest, RampRequest, read
from evalcore.gates.verdict import Moment, as_json, invalid, of_gates
from evalcore.judges.bindings import Unbound, bind
from evalcore.registry.disk import read_tree, today
from evalcore.registry.judge import Judge
from evalcore.registry.registry import build
from evalcore.scoring.answers import Scored, collect
from evalcore.scoring.items import trace_item
from evalcore.validation import checked
from schemas.dead_letters import DeadLetter, UnreadableRecord
from schemas.judges import Enforcement, Milestone
from schemas.outcomes import Cause
from schemas.publish.asyncapi import CHANNELS
from schemas.publish.contracts import FORMS, files, main, schema
from schemas.publish.examples import EXAMPLES
from schemas.publish.file_schemas import FILES, WRITTEN
from schemas.topics import Topics
from schemas.verdicts import Code, Composition, JudgeScore, SampleFacts
from streams.alerts.ramp_commands import BREACH
from streams.queries.audit import Audit
from tests.memory_ports import ManualClock
from tests.root import ROOT
from tests.unit.agents.builders import Rec

DOCS = ROOT / "docs"
READ: dict[str, Any] = {"plain-thumb": thumbs, "stream-record": thumbs, "reroll": rerolls, "trace": traces}
MAPS = frozenset(
    {"Keys", "NewImage", "signals", "feedback_scores", "reasons", "dead_lettered", "parked", "filtered", "left_out"}
) | {
    "thresholds",
    "enforcement",
    "per_judge_scores",
}
"""Objects whose names are data: they have no fields to add to."""
NOW = 1_772_366_700_000  # 2026-03-01T12:05:00Z, shortly after the examples


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def examples() -> list[tuple[str, dict[str, Any]]]:
    return [(name, example) for name in FORMS for example in EXAMPLES[name]]


def objects(value: Any, maps: frozenset[str] = frozenset(), name: str = "") -> Iterator[dict[str, Any]]:
    """Every object inside, but for those under the names in `maps`."""
    if isinstance(value, dict):
        if name not in maps:
            yield value
        for key, inner in value.items():
            yield from objects(inner, maps, key)
    elif isinstance(value, list):
        for inner in value:
            yield from objects(inner, maps)


def load_asyncapi() -> Any:
    return yaml.safe_load((DOCS / "asyncapi.yaml").read_text())


# AgentCI Step 0.5 box 2.
def test_what_is_committed_is_what_the_types_say() -> None:
    for path, text in files().items():
        assert (DOCS / path).read_text() == text, f"{path}: run `make docs`"


def test_nothing_else_lies_there() -> None:
    assert {path.name for path in (DOCS / "schemas").glob("*.json")} == {
        f"{name}.json" for name in [*FORMS, *FILES, *WRITTEN]
    }


def test_generating_writes_the_same_into_any_folder(tmp_path: Path) -> None:
    main(tmp_path)
    assert {str(p.relative_to(tmp_path)): p.read_text() for p in tmp_path.rglob("*") if p.is_file()} == files()


def test_a_schema_is_one_and_names_no_host() -> None:
    for name in FORMS:
        body = schema(name)
        Draft202012Validator.check_schema(body)
        assert body["$id"] == f"urn:rampgate:schema:{name}"
        assert body["examples"], name
        text = json.dumps({key: value for key, value in body.items() if key != "$schema"})
        assert "://" not in text, name


def test_every_example_holds_and_our_codecs_take_what_we_publish() -> None:
    for name, example in examples():
        validator(name).validate(example)
        TypeAdapter(FORMS[name].type).validate_python(example)
        if name in READ:
            decoded = READ[name].decode([Rec(json.dumps(example).encode())], NOW, Policy())
            assert not decoded.bad, example
            assert len(decoded.items) + len(decoded.dropped) == 1, example


def test_an_unknown_field_is_accepted_wherever_it_stands() -> None:
    """The tolerant reader: an old reader must take what a newer writer sends."""
    for name, example in examples():
        newer = copy.deepcopy(example)
        for found in list(objects(newer, MAPS)):
            found["a field of tomorrow"] = {"added": [1]}
        validator(name).validate(newer)
        TypeAdapter(FORMS[name].type).validate_python(newer)
        if name in READ:
            assert not READ[name].decode([Rec(json.dumps(newer).encode())], NOW, Policy()).bad, newer


def test_no_schema_of_a_message_or_an_answer_is_closed() -> None:
    for name in FORMS:
        assert all(found.get("additionalProperties") is not False for found in objects(schema(name))), name


def test_a_required_field_is_required() -> None:
    for name in FORMS:
        for field in schema(name)["required"]:
            lacking = {key: value for key, value in EXAMPLES[name][0].items() if key != field}
            assert not validator(name).is_valid(lacking), (name, field)


def test_the_headers_that_are_written_are_those_that_are_published() -> None:
    whole = Rec(b"v", headers=(("rampgate.attempts", b"2"), ("other", b"1")))
    cut = Rec(b"v" * 3_000_000, key=b"k" * 2_000_000, headers=(("x", b"x" * 2_000_000),))
    batch = UnreadableRecord(
        "t", 0, 7, NOW, Cause.UNREADABLE, "why", b"x" * 3_000_000, 2, b"k" * 2_000_000, (("x", b"x" * 2_000_000),)
    )
    for record in (whole, cut, batch):
        for cause in Cause:
            _, _, headers = DeadLetter(record, cause, "why", "thumbs.decode", NOW).encode(1_000_000)
            ours = {name: content.decode() for name, content in headers if name.startswith("rampgate.")}
            validator("dead-letter-headers").validate(ours)
            known = set(schema("dead-letter-headers")["properties"])
            assert set(ours) <= known
    assert set(ours) == known, "every header that is published is written in some case"


def test_the_audit_that_is_written_is_the_one_that_is_published() -> None:
    sent: list[bytes] = []

    class Producer:
        async def send(self, messages: Any) -> None:
            sent.extend(value for _, _, value, _ in messages)

    producer: Any = Producer()
    audit = Audit(producer, "ps5.query_audit", ManualClock())
    asyncio.run(audit.read("ci@127.0.0.1", "eval", {"response_id": "r"}, None, ["r", "q"]))
    (value,) = map(json.loads, sent)
    validator("query-audit").validate(value)
    assert set(value) == set(schema("query-audit")["properties"])


def test_a_published_ramp_step_is_a_request_that_can_be_decided() -> None:
    for example in EXAMPLES["ramp-step"]:
        assert isinstance(read(json.dumps(example).encode()), RampRequest)
        assert isinstance(read(json.dumps(example | {"a field of tomorrow": 1}).encode()), RampRequest)


CONTRACT = (
    "request_id verdict_id experiment_id agent_id agent_version vertical milestone verdict gates failing_judges "
    "per_judge_scores action halt_at_percent reasons supersedes sample evidence"
)
"""Fields of a verdict that the rollout controller and other subscribers rely on."""
OF_A_JUDGE = "score threshold passed enforcement n unscored floor tolerance baseline ci95 rule judge_version"


def test_pc5_ac4_every_field_that_subscribers_rely_on_is_published_as_required() -> None:
    body = schema("verdict")
    assert set(CONTRACT.split()) <= set(body["required"])
    defs = body["$defs"]
    assert set(OF_A_JUDGE.split()) <= set(defs["JudgeScore"]["required"])
    assert set(defs["GateVerdict"]["required"]) >= {"milestone", "verdict", "failing_judges", "per_judge_scores"}
    assert set(defs["SampleFacts"]["required"]) >= {"scope", "fingerprint", "size", "composition", "frozen_at"}
    assert set(defs["EvidenceFacts"]["required"]) == {
        "config_hash",
        "coverage",
        "decided_at",
        "duration_seconds",
        "clean_pass_probability",
    }
    assert set(defs["Composition"]["required"]) == {"golden", "production", "adversarial"}
    assert defs["Code"]["enum"] == list(Code)


def written() -> list[dict[str, Any]]:
    """A verdict with numbers, one of a step without a gate, one of an invalid request: as the topic gets them."""
    numbers, between = (read(json.dumps(example).encode()) for example in EXAMPLES["ramp-step"])
    wrong = read(b'{"request_id": "r", "to_percent": 101}')
    assert isinstance(numbers, RampRequest)
    assert isinstance(between, RampRequest)
    assert isinstance(wrong, InvalidRequest)
    limits = Limits.of(0.7, 0.5, 0.05, Enforcement.WARN, [0.8])
    judged = Judged(collect([Scored(0.6)] * 3, (0.0, 1.0)), limits, (0.0, 1.0), version="1")
    gate = decide(Milestone.PRE_RAMP, {"ux_quality": judged}, Evidence(3, 1))
    moment = Moment("2026-03-01T12:10:22.871+00:00", 21.667)
    facts = SampleFacts(
        scope="version",
        fingerprint="f" * 32,
        size=3,
        window_seconds=86_400,
        composition=Composition(production=3),
        frozen_at="2026-03-01T12:10:01.204+00:00",
    )
    return [
        as_json(verdict)
        for verdict in (
            of_gates(numbers, [gate], moment, sample=facts, config_hash="6d1f", coverage=1.0),
            of_gates(between, [], moment),
            invalid(wrong, moment),
        )
    ]


def test_the_verdicts_that_are_written_are_those_that_are_published() -> None:
    for verdict in written():
        validator("verdict").validate(verdict)
        assert set(verdict) == set(schema("verdict")["properties"])
    judge = JudgeScore(1.0, 1.0, True, Enforcement.BLOCK)
    assert set(written()[0]["per_judge_scores"]["ux_quality"]) == set(vars(judge))
    assert set(EXAMPLES["verdict"][0]["per_judge_scores"]["ux_quality"]) == set(vars(judge))
    assert {name: type(value) for name, value in written()[0].items()} == {
        **{name: type(value) for name, value in EXAMPLES["verdict"][0].items()},
        "halt_at_percent": type(None),
    }


def test_pc5_5_7_the_ramp_command_that_is_written_is_the_one_that_is_published() -> None:
    breach = Breach("k", "jailbreaking", None, "a", "v", True, 0.9, 0.97, 40, "2026-03-01T12:10:00+00:00")
    command = ramp_command(Response(breach, Event.BREACH, (Step.RAMP_DOWN,)))
    validator("ramp-command").validate(command)
    assert set(command) == set(schema("ramp-command")["required"]) == set(EXAMPLES["ramp-command"][0])
    assert set(EXAMPLES["ramp-command-headers"][0]) == {BREACH}


def test_the_asyncapi_document_has_every_topic_and_its_references_lead_somewhere() -> None:
    document = load_asyncapi()
    assert document["asyncapi"] == "3.1.0"
    topics = Topics()
    addresses = {channel["address"] for channel in document["channels"].values()}
    assert addresses == {*(topics[name] for name in CHANNELS if name != "query-audit"), topics.audit}
    for found in objects(document):
        reference = found.get("$ref")
        if reference is None:
            continue
        if reference.startswith("#/"):
            place = document
            for part in reference[2:].split("/"):
                place = place[part]
        else:
            assert (DOCS / reference).is_file(), reference
    actions = {name: channel.action for name, channel in CHANNELS.items()}
    assert {o["channel"]["$ref"].rsplit("/")[-1]: o["action"] for o in document["operations"].values()} == actions


def test_every_message_has_a_key_and_examples_that_hold() -> None:
    for name, message in load_asyncapi()["components"]["messages"].items():
        assert message["bindings"]["kafka"]["key"]["type"] == "string"
        assert message["examples"], name
        for example in message["examples"]:
            for part in ("payload", "headers"):
                if "schema" in message.get(part, {}):
                    form = Path(message[part]["schema"]["$ref"]).stem
                    validator(form).validate(example[part])


WHOLE = [one for one in EXAMPLES["trace"] if "output" in one]
"""The others are read from Opik."""


def shipped() -> list[Judge]:
    files, _ = checked(read_tree(ROOT / "configs"), today())
    registry = build(files)
    return [judge for vertical in (None, *registry.verticals) for judge in registry.all(vertical)]


@pytest.mark.parametrize("example", WHOLE, ids=range(len(WHOLE)))
def test_every_shipped_judge_can_score_the_example_of_a_trace(example: Any) -> None:
    judges, item = shipped(), trace_item(example)
    assert len(judges) > 10
    wrong = {}
    for judge in judges:
        try:
            bound = bind(judge, item.context, item.source)
        except Unbound as error:
            wrong[judge.id] = str(error)
        else:
            assert example["output"]["messages"][-1]["content"][-1]["text"] in bound["output"], judge.id
    assert (wrong, item.missing) == ({}, "")
