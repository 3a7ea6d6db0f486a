"""Where a vertical's traces hold what judges read (PC5 §5.2 `variables`, AC-9; PF-9 §5.5, FR-8): stated once in its
file, bound by name in every rule, and said of each trace that lacks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.policy import Policy
from evalcore.canaries.planting import planted, positions
from evalcore.judges import llm_judge
from evalcore.judges.bindings import PLAIN, bind, resolve
from evalcore.judges.evaluator import Task
from evalcore.registry.opik_rules import desired
from evalcore.registry.rule_diff import changes
from evalcore.scoring.cache import MemoryScoreCache
from rampgate.commands.queries import turn_report
from rampgate.report.console import show
from schemas.outcomes import Kind
from schemas.verticals import TraceLayout
from streams.metrics import Metrics
from streams.queries.turn_view import view_turn
from tests.unit.agents.builders import trace as sent
from tests.unit.agents.join.world import World
from tests.unit.evalcore.lint.lint_cases import CHECK, found
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.scoring.scoring_rig import GOOD, Model, scorer
from tests.unit.rampgate.ci_gate.gate_commands import codes, on_outputs, ran, verdict
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, MANIFEST, TRACES, Rig, jsonl, trace
from tests.unit.rampgate.ci_gate.gate_rig import item as an_item
from tests.unit.rampgate.cli.registry_copies import copied, edit, run
from tests.unit.streams.queries.viewed_turns import TRACE, Opik, store_with

NAMED = "{variables: {online: {input: question, output: answer}}}"
TOOLED = "{variables: {online: {input: question, output: answer, calls: tools, facts: context}}}"
RULES = {f"rules/{name}.yaml": NAMED for name in ("helpfulness", "brevity", "refusal", "honesty")}
SHOP = {"verticals/shop.yaml": "{trace: {question: input.query, answer: output.reply.text}}"}
OURS: dict[str, Any] = {"input": {"query": "how?"}, "output": {"reply": {"text": "so #quality:1"}, "model": "m"}}
"""A trace of the shop's layout."""
PARTS = [{"type": "text", "text": "a secret"}, {"type": "tool_use"}, {"type": "text", "text": "so #quality:1"}]


def gate(rig: Rig, code: int = 0) -> dict[str, Any]:
    return verdict("--milestone", "pre_ramp", "--traces", rig.traces, code=code)


def missing(found: dict[str, Any]) -> set[tuple[int, int]]:
    return {(one["unscored"], one["unreadable"]) for one in found["per_judge_scores"].values()}


def test_pc5_ac9_a_vertical_says_once_where_its_traces_hold_what_judges_read(rig: Rig) -> None:
    rig.registry({**RULES, **SHOP})
    rig.written(**OURS, metadata={"vertical": "shop", "category": "shop_returns"})
    assert missing(gate(rig)) == {(0, 0)}
    rig.written(**OURS, metadata={"vertical": "travel", "category": "general_qa"})
    assert missing(gate(rig, code=1)) == {(TRACES, TRACES)}, "what the shop states is the shop's"
    travels = {"input": "how?", "output": {"content": "so #quality:1"}}
    mixed = [(OURS, "shop"), (travels, "travel")]
    jsonl(rig.traces, *({**trace(n, vertical=mixed[n % 2][1]), **mixed[n % 2][0]} for n in range(TRACES)))
    assert missing(gate(rig)) == {(0, 0)}, "of a gate without a vertical each trace says which layout is its"
    rig.registry({**RULES, **SHOP, "verticals/travel.yaml": "{trace: {question: input, answer: output.content}}"})
    travel = verdict("--milestone", "pre_ramp", "--traces", rig.traces, "--vertical", "travel", code=1)
    assert (missing(travel), codes(travel)) == ({(0, 0)}, {"dataset_mismatch"}), "they are not its own"


def test_pc5_ac9_a_trace_without_what_judges_read_has_a_reason_of_its_own(rig: Rig) -> None:
    """Not the model's outage: nothing was asked, and the remedy is in the vertical's file."""
    rig.registry({**RULES})
    rig.written(**OURS)
    found = gate(rig, code=1)
    assert codes(found) == {"unreadable_item"}
    assert missing(found) == {(TRACES, TRACES), (TRACES // 2, TRACES // 2)}
    (first, *_) = found["reasons"]
    assert "`trace: {question: PATH}` in the vertical's file" in first["message"]
    assert found["evidence"]["model_calls"] == 0
    shown = ran("--milestone", "pre_ramp", "--traces", rig.traces).stdout
    said_once = [line for line in shown.splitlines() if "its score lies between 0 and 1" in line]
    assert len(said_once) == 1, "judges with one cause are one reason to read"
    assert {name for name, one in found["per_judge_scores"].items() if name in said_once[0]} > {"refusal"}


@pytest.mark.parametrize(("lost", "code"), [(TRACES // 2 - 1, "judge_unavailable"), (TRACES // 2, "unreadable_item")])
def test_the_reason_is_that_of_most_that_was_not_scored(rig: Rig, lost: int, code: str) -> None:
    rig.registry({**RULES})
    none = {"input": "how?", "output": None}
    metadata = {"category": "shop_returns"}
    jsonl(
        rig.traces,
        *({**(OURS if n < lost else none), "trace_id": f"t{n}", "metadata": metadata} for n in range(TRACES)),
    )
    found = gate(rig, code=1)
    assert codes(found) == {code}
    assert missing(found) == {(TRACES, lost)}
    assert f"{lost} of them lack what it reads" in found["reasons"][0]["message"]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("so", "so"),
        ({"content": "so"}, "so"),
        ({"content": [{"type": "text", "text": "so"}]}, "so"),
        ({"messages": [{"content": "first"}, {"content": "so"}]}, "so"),
        ([{"role": "user", "content": "first"}, {"role": "assistant", "content": "so"}], "so"),
        ({"messages": ["first", "so"]}, "so"),
        ({"messages": [{"content": [{"type": "thinking"}, {"type": "text", "text": "so"}]}]}, "so"),
        ({"messages": [{"content": PARTS}]}, json.dumps(PARTS)),
        ({"messages": [{"content": None, "tool_calls": []}]}, None),
        ({"messages": []}, None),
        ({"reply": {"text": "so"}}, None),
        ([], None),
        (7, None),
        (None, None),
    ],
)
def test_what_is_not_stated_is_plain_text_content_or_the_last_message(said: Any, read: str | None) -> None:
    """Of a content with several texts none is hidden: a safety judge sees what stands before the last."""
    judge = built({"rules/refusal.yaml": NAMED}).judge("refusal")
    for source in ({"input": "q", "output": said}, {"input": said, "output": "a"}):
        shown = bind(judge, "online", source) if read is not None else None
        assert shown is None or read in shown.values()
        if read is None:
            with pytest.raises(LookupError, match=r"^no (question|answer) that judges can read: .*`trace: \{"):
                bind(judge, "online", source)


def test_a_stated_path_reads_plain_text_too_and_nothing_else_in_its_place() -> None:
    """A candidate answers in plain text where traces have more around it; a trace that lacks the path is unreadable."""
    layout = TraceLayout(answer="output.reply.text", tools="output.steps", context="input.documents")
    assert resolve("answer", {"output": "so"}, layout) == "so"
    assert resolve("answer", {"output": {"reply": {"text": "so"}, "content": "draft"}}, layout) == "so"
    for output in ({"content": "so"}, {"reply": {"text": None}}, {"reply": "so"}):
        with pytest.raises(LookupError, match="no answer"):
            resolve("answer", {"output": output}, layout)
    elsewhere = TraceLayout(answer="metadata.final")
    assert resolve("answer", {"output": "draft", "metadata": {"final": "so"}}, elsewhere) == "so", "no output is meant"
    with pytest.raises(LookupError, match="no answer"):
        resolve("answer", {"output": "draft"}, elsewhere)
    assert resolve("tools", {"output": {"steps": [1]}, "tool_calls": [2]}, layout) == [1]
    assert resolve("tools", {"output": {"messages": [1]}, "tool_calls": [2]}, PLAIN) == [2]
    assert resolve("tools", {"output": [1]}, PLAIN) == [1]
    assert resolve("context", {"input": {"documents": ["d"], "context": "c"}}, layout) == ["d"]
    assert resolve("context", {"input": {"context": "c"}}, PLAIN) == "c"
    with pytest.raises(LookupError, match="no tools"):
        resolve("tools", {"output": "so"}, PLAIN)


def test_a_name_is_a_name_in_traces_alone() -> None:
    """A dataset may have a field `answer` or `context`, which is then what its path says."""
    judge = built({"rules/refusal.yaml": "{variables: {offline: {input: question, output: answer}}}"}).judge("refusal")
    assert bind(judge, "offline", {"question": {"content": "q"}, "answer": "a"})["input"] == '{"content": "q"}'


def test_the_gates_vertical_counts_where_a_trace_names_none(rig: Rig) -> None:
    rig.registry({**RULES, **SHOP})
    rig.written(**OURS)
    found = verdict("--milestone", "pre_ramp", "--traces", rig.traces, "--vertical", "shop")
    assert missing(found) == {(0, 0)}


def dataset(rig: Rig, output: Any, **item: Any) -> tuple[object, ...]:
    """The rig's golden set and answers, all of them with this output."""
    jsonl(rig.dataset, *({**an_item(n, vertical="shop"), **item} for n in range(ITEMS)))
    jsonl(rig.outputs, *({"id": f"i{n}", "output": output} for n in range(ITEMS)))
    return "--milestone", "pre_merge", *on_outputs(rig)


@pytest.mark.parametrize(
    ("stated", "given", "output"),
    [
        (True, OURS["input"], OURS["output"]),
        (True, "how?", "so #quality:1"),
        (False, "how?", {"content": "so #quality:1"}),
        (False, {"messages": [{"content": "how?"}]}, {"messages": [{"content": "so #quality:1"}]}),
    ],
)
def test_pc5_5_2_before_a_merge_judges_read_an_item_by_the_verticals_layout(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, stated: bool, given: Any, output: Any
) -> None:
    """The very texts that they read in a rollout, not all that lies around them."""
    asked = []
    turn_json = llm_judge.turn_json
    monkeypatch.setattr(llm_judge, "turn_json", lambda values, most: asked.append(values) or turn_json(values, most))
    rig.registry({"evaluation_manifest.yaml": MANIFEST, **(SHOP if stated else {})})
    assert missing(verdict(*dataset(rig, output, input=given))) == {(0, 0)}
    assert {(values["input"], values["output"]) for values in asked} == {("how?", "so #quality:1")}


@pytest.mark.parametrize(
    ("given", "output"),
    [
        (OURS["input"], {"reply": {"html": "so #quality:1"}}),
        (OURS["input"], {}),
        ({"q": "how?"}, OURS["output"]),
    ],
)
def test_pc5_ac9_an_item_without_what_judges_read_is_unreadable_before_a_merge(
    rig: Rig, given: Any, output: Any
) -> None:
    rig.registry({"evaluation_manifest.yaml": MANIFEST, **SHOP})
    found = verdict(*dataset(rig, output, input=given), code=1)
    assert codes(found) == {"unreadable_item"}
    assert found["evidence"]["model_calls"] == 0


def test_pc5_10_2_a_gate_that_can_read_nothing_is_an_error_in_its_report_and_its_figures(
    rig: Rig, tmp_path: Path
) -> None:
    report, figures = tmp_path / "gate.xml", tmp_path / "gate.prom"
    rig.registry({"evaluation_manifest.yaml": MANIFEST, **SHOP})
    verdict(*dataset(rig, {}, input=OURS["input"]), "--report", report, "--metrics-file", figures, code=1)
    assert 'eval_gate_verdict_total{milestone="pre_merge",verdict="error"} 1.0' in figures.read_text()
    assert ("<error" in report.read_text(), "<failure" in report.read_text()) == (True, False)


def test_before_a_merge_calls_of_tools_are_read_where_the_layout_states_them() -> None:
    """Without a stated place they are those beside the answer."""
    rules = {"rules/refusal.yaml": "{variables: {offline: {input: input, output: output, calls: tool_calls}}}"}
    item = {"input": "q", "output": {"content": "a", "trail": [1]}, "tool_calls": [2]}
    shop = {"verticals/shop.yaml": "{trace: {tools: output.trail}}"}
    for files, source, calls in [
        (rules, item, "[2]"),
        ({**rules, **shop}, item, "[1]"),
        ({**rules, **shop}, {**item, "output": "a"}, "[2]"),
    ]:
        judge = built(files).judge("refusal", "shop")
        assert bind(judge, "offline", source) == {"input": "q", "output": "a", "calls": calls}
    (_, output, calls) = positions(
        built({**rules, **SHOP}).judge("refusal", "shop"), "offline", {**OURS, "tool_calls": [{"said": "a b"}]}
    )
    assert (output, calls) == ("output", "calls.said")


async def test_an_answer_is_not_remembered_past_a_change_of_the_layout() -> None:
    model, source = Model(lambda output, _: GOOD), {"input": {"query": "q", "q": "r"}, "output": "so"}
    ours, asked = scorer(model, MemoryScoreCache()), []
    for question in ("input.query", "input.q", "input.q"):
        shop = {"verticals/shop.yaml": f"{{trace: {{question: {question}}}}}"}
        judge = built({**RULES, **shop}).judge("helpfulness", "shop")
        await ours.score("g", [Task(judge, "t", "online", source, digest=b"the same bytes")])
        asked.append(len(model.calls))
    assert asked == [1, 2, 2]


def test_the_configuration_is_another_and_the_judges_version_is_not() -> None:
    """Bindings decide a version; where a vertical's traces have the same texts doesn't: a suspension still holds."""
    before, after = built(RULES), built({**RULES, **SHOP})
    assert before.config_hash != after.config_hash
    shown = changes(before.all("shop"), after.all("shop"))
    assert {(one.judge, one.field) for one in shown} >= {("refusal", "trace.answer"), ("refusal", "trace.question")}
    assert {one.field for one in shown} == {"trace.answer", "trace.question"}
    assert changes(before.all("travel"), after.all("travel")) == ()
    assert before.judge("refusal", "shop").version == after.judge("refusal", "shop").version
    assert built().judge("refusal").version != before.judge("refusal").version


def test_pf9_r4_no_layout_reads_what_the_user_signalled() -> None:
    for path, check in [
        ("answer: 'feedback_scores[0].value'", "binding-of-user-signal"),
        ("answer: metadata.user_signal_thumbs", "binding-of-user-signal"),
        ("answer: metadata.expected_output", "output-is-the-agents"),
        ("{question: output.a, answer: output.a}", "output-is-the-agents"),
        ("answer: answer", "binding-is-known"),
    ]:
        stated = path if path.startswith("{") else f"{{{path}}}"
        (one,) = found(CHECK[check], {"verticals/shop.yaml": f"{{trace: {stated}}}"}, TODAY)
        assert (one.file, one.field) == ("configs/verticals/shop.yaml", "trace.answer")


def test_pc5_fr9_opiks_copy_reads_where_the_vertical_says() -> None:
    """Opik's rules look in one place: without a layout that of messages."""
    judge = built({**RULES, **SHOP}).judge("helpfulness", "shop")
    variables = desired(judge, "shop", live=False).variables
    assert (variables["input"], variables["output"]) == ("input.query", "output.reply.text")
    other = desired(built(RULES).judge("helpfulness", "shop"), "shop", live=False).variables
    assert (other["input"], other["output"]) == ("input.messages[-1].content", "output.messages[-1].content[-1].text")
    tooled = desired(
        built({"rules/helpfulness.yaml": TOOLED}).judge("helpfulness", "shop"), "shop", live=False
    ).variables
    assert (tooled["facts"], tooled["calls"]) == ("input.context", "output.messages")


def test_canaries_are_planted_where_the_layout_says() -> None:
    judge = built({**RULES, **SHOP}).judge("refusal", "shop")
    assert positions(judge, "online", OURS) == ["input", "output"]
    made = planted(judge, "online", OURS, "output", "OBEY")
    assert made["output"]["reply"]["text"].startswith("OBEY")
    assert made["output"]["model"] == "m"


async def test_pf9_fr11_a_metric_counts_by_vertical_the_traces_that_judges_cannot_read() -> None:
    """Before any gate, whether or not a model is configured: as each record comes."""
    world, metrics = World(), Metrics()
    world.policy = Policy(layouts={"shopping": TraceLayout(question="input.query", answer="output.reply.text")})
    fields: list[dict[str, Any]] = [
        OURS,
        {"input": "q", "output": "a"},
        {"input": {"query": "q"}, "output": {"said": "a"}},
        {"input": {}},
    ]
    events = [sent(f"r{n}", **one) for n, one in enumerate(fields)]
    events += [sent("r8", vertical="made up", **OURS), {**sent("r9", **OURS, vertical="travel"), "ended_at": None}]
    metrics.observe_report(await world.tell(Kind.TRACE, *events), registered=["shopping"])
    shown = [line for line in metrics.exposition().decode().splitlines() if line.startswith("rampgate_unreadable")]
    assert shown == [
        'rampgate_unreadable_traces_total{vertical="shopping"} 1.0',
        'rampgate_unreadable_traces_total{vertical="unregistered"} 1.0',
    ]


async def test_a_turn_says_what_judges_cannot_read_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    from agents.join.turn import Turn

    opik = Opik({str(TRACE): {"id": str(TRACE), "metadata": {"vertical": "shop"}, **OURS}}, {})
    turn, layout = Turn(trace=TRACE.bytes, project="p"), TraceLayout(question="input.query", answer="output.text")
    view = await view_turn("r", store_with(turn), opik, {"shop": layout})
    assert list(view.unreadable) == ["answer"]
    assert "output has no 'text'" in view.unreadable["answer"]
    show(turn_report(view))
    assert "no answer" in capsys.readouterr().out
    assert (
        await view_turn("r", store_with(turn), opik, {"shop": layout.model_copy(update={"answer": "output"})})
    ).unreadable == {}


@pytest.mark.parametrize("milestone", ["pre_merge", "pre_ramp"])
@pytest.mark.parametrize(
    ("text", "calls", "code"),
    [
        ("so #quality:1", [], None),
        (" ", [], "judge_unavailable"),
        (" ", [{"name": "find"}], None),
        (None, [], "unreadable_item"),
    ],
)
def test_an_answer_that_is_blank_where_the_layout_says_is_none(
    rig: Rig, milestone: str, text: str | None, calls: list[Any], code: str | None
) -> None:
    """As a blank output is, unless tools were called."""
    rig.registry({**RULES, **SHOP})
    given = {**OURS, "output": {"reply": {"text": text}}}
    if milestone == "pre_ramp":
        rig.written(**given, tool_calls=calls, metadata={"vertical": "shop", "category": "shop_returns"})
        arguments: tuple[object, ...] = ("--milestone", "pre_ramp", "--traces", rig.traces)
    else:
        arguments = dataset(rig, given["output"], input=given["input"])
        jsonl(rig.outputs, *({"id": f"i{n}", "output": given["output"], "tool_calls": calls} for n in range(ITEMS)))
    found = json.loads(ran(*arguments, "--json").stdout)
    assert codes(found) - {"threshold_missed", "floor_breach"} == ({code} if code else set())
    assert (
        {one["unscored"] for one in found["per_judge_scores"].values()} - {0} != set()
        if code
        else missing(found) == {(0, 0)}
    )


@pytest.mark.parametrize(("field", "code"), [("reply", None), ("said", "unreadable_item")])
def test_an_answer_beside_the_output_is_read_by_gates_as_by_the_scaffold(
    rig: Rig, field: str, code: str | None
) -> None:
    """What is no output is no answer only where the answer would be in it."""
    rig.registry({**RULES, "verticals/shop.yaml": "{trace: {answer: reply.text}}"})
    rig.written(
        **{"output": None, field: {"text": "so #quality:1"}}, metadata={"vertical": "shop", "category": "shop_returns"}
    )
    found = gate(rig, code=int(code is not None))
    assert codes(found) == ({code} if code else set())


def test_pf9_fr8_the_scaffold_counts_what_judges_cannot_read_of_a_sample(tmp_path: Path) -> None:
    configs, sample = copied(tmp_path), tmp_path / "sample.jsonl"
    scaffold = ("vertical", "scaffold", "shop", "--from", str(sample))
    jsonl(
        sample, *({**trace(n), **OURS, "tool_calls": []} for n in range(3)), {**trace(3), "input": "q", "output": "a"}
    )
    made = run(configs, *scaffold)
    assert made.code == 1
    for name, count, line in (("question", 3, 1), ("answer", 3, 1), ("tools", 1, 4)):
        assert f"judges can't read {name} in {count} of 4 traces, first in line {line}: " in made.out
    assert "`tool_calls: []` in the trace" in made.out
    assert "context" not in made.out, "no judge of the vertical reads it"
    with (configs / "verticals/shop.yaml").open("a") as file:
        file.write("trace: {question: input.query, answer: output.reply.text}\n")
    jsonl(sample, *({**trace(n), **OURS, "tool_calls": []} for n in range(3)))
    again = run(configs, *scaffold, "--json")
    assert (again.code, again.json["outcome"], again.json["sample"]) == (0, "exists", {"traces": 3, "unreadable": {}})
    edit(
        configs / "verticals/shop.yaml",
        "\ntrace: {question: input.query, answer: output.reply",
        "\ntrace: {answer: output",
    )
    wrong = run(configs, *scaffold, "--json")
    assert (wrong.code, wrong.json["sample"]["unreadable"]["answer"]["traces"]) == (1, 3)
    assert "output has no 'text'" in wrong.json["sample"]["unreadable"]["answer"]["why"]
    assert run(configs, "vertical", "scaffold", "shop").code == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "sample.jsonl: can't be read: No such file"),
        ("no json\n", "sample.jsonl:1: "),
         ('\n{"request": {"query": "q"}, "reply": {}}\n', "sample.jsonl:2: input: must be what the user asked, got a "
         'trace with request, reply; put what you have into {"input": '),
        ("{}\n", "sample.jsonl:1: input: must be what the user asked, got an empty one; "),
        ("\n", "no trace in "),
    ],
)  # fmt: skip
def test_pf9_fr8_a_sample_that_is_none_is_refused_in_a_line(tmp_path: Path, text: str | None, said: str) -> None:
    """Nothing is written then; a gate says the same of such a file."""
    configs, sample = copied(tmp_path), tmp_path / "sample.jsonl"
    if text is not None:
        sample.write_text(text)
    made = run(configs, "vertical", "scaffold", "shop", "--from", str(sample))
    assert (made.code, made.out, made.err.count("\n")) == (2, "", 1)
    assert said in made.err
    assert not (configs / "verticals/shop.yaml").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("trace: {question: input.query, anwser: output.reply.text}", "did you mean 'answer'"),
        (
            "trace: {answer: output.x}\ntrace: {question: input.query, answer: output.reply.text}",
            "stands a second time",
        ),
        ("trace: {answer", "shop.yaml"),
        ("trace: {answer: metadata.user_signal_thumbs}", "binding-of-user-signal"),
    ],
)
def test_pf9_fr8_an_error_in_the_verticals_own_file_is_shown_before_any_trace_is_counted(
    tmp_path: Path, more: str, said: str
) -> None:
    """Without its layout all traces would look unreadable, and the remedy would be a wrong one."""
    configs, sample = copied(tmp_path), tmp_path / "sample.jsonl"
    jsonl(sample, {**trace(0), **OURS, "tool_calls": []})
    assert run(configs, "vertical", "scaffold", "shop", "--from", str(sample)).code == 1
    with (configs / "verticals/shop.yaml").open("a") as file:
        file.write(f"{more}\n")
    made = run(configs, "vertical", "scaffold", "shop", "--from", str(sample))
    assert made.code == 1
    assert said in made.out
    assert "judges can" not in made.out
    shown = run(configs, "vertical", "scaffold", "shop", "--from", str(sample), "--json")
    assert (shown.code, len(shown.json["errors"]) > 0) == (1, True)
