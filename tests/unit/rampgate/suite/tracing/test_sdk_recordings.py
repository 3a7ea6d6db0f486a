"""One scenario, run in each SDK, has one trajectory and one sum by every adapter (issue 35, Done when 3).

Parallel calls of which the first ends last, a call that fails, its retry, a handoff, a call of the second agent.
`make sdk-recordings` records it again with the SDKs that `tests/sdk_recordings/requirements.txt` names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

import tests.sdk_recordings
from evalcore.trajectory.reading import in_one_form
from evalcore.trajectory.record import Trajectory, same_agent, trajectory_of
from evalcore.trajectory.spans import trace_of
from rampgate.suite.tracing.spans import read

FOLDER = Path(tests.sdk_recordings.__file__).parent
SCENARIO = json.loads((FOLDER / "scenario.json").read_text())
EXPECTED = SCENARIO["expected"]
WAYS = (
    "openai-agents-chat", "openai-agents-responses", "langgraph", "opentelemetry", "opentelemetry-1.36", "opik",
)  # fmt: skip


def recorded(way: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "made" / f"{way}.json").read_text())
    return found


def followed(answer: Mapping[str, Any]) -> Trajectory:
    if "otlp" in answer:
        spans = read(orjson.dumps(answer["otlp"]), as_json=True)
        return trajectory_of({"output": answer["output"], **trace_of(spans)})
    return trajectory_of(in_one_form(answer))


def plain() -> dict[str, Any]:
    """The scenario in the contracts' form, as an agent that is not instrumented may say it."""
    asked = [call for turn in SCENARIO["turns"] for call in turn.get("calls", ())]
    failed = iter([False, False, True, False, False, False])
    made = [{**call, **({"error": "timed out"} if next(failed) else {})} for call in asked]
    used = [
        {"model": "m", **{name: turn[name] for name in ("input_tokens", "output_tokens")}} for turn in SCENARIO["turns"]
    ]
    return {"output": EXPECTED["output"], "tool_calls": made, "llm_calls": used}


@pytest.mark.parametrize("way", [*WAYS, "plain"])
def test_every_adapter_reads_the_same_way_of_the_same_scenario(way: str) -> None:
    found = followed(plain() if way == "plain" else recorded(way))
    assert found.output == EXPECTED["output"]
    assert found.tools == EXPECTED["tools"]
    assert found.tool_calls is not None
    assert found.handoffs is not None
    assert found.llm_calls is not None
    assert [call.get("arguments") for call in found.tool_calls] == EXPECTED["arguments"]
    assert [call.get("error") is not None for call in found.tool_calls] == EXPECTED["failed"]
    assert [same_agent(*both) for both in zip(found.handoffs, EXPECTED["handoffs"], strict=True)] == [True]
    assert (len(found.llm_calls), found.usage) == (EXPECTED["llm_calls"], EXPECTED["usage"])
    assert not found.requested_calls
    assert not found.unreadable


def test_parents_of_the_recordings_say_sums_which_are_not_added() -> None:
    """Else the test above would hold by chance."""
    text = {way: (FOLDER / "made" / f"{way}.json").read_text() for way in WAYS}
    assert "1712" in text["openai-agents-chat"], "a task's sum"
    assert '"1620"' in text["opentelemetry"], "an agent's sum"


def test_no_recording_names_a_folder_of_the_machine_that_made_it() -> None:
    for file in sorted((FOLDER / "made").glob("*.json")):
        assert re.findall(r'File \\*"/[^,]*', file.read_text()) == [], file.name


def test_recordings_name_the_versions_that_made_them() -> None:
    pinned = [line.split(" #")[0].strip() for line in (FOLDER / "requirements.txt").read_text().splitlines()]
    wanted = dict(line.replace("[openai]", "").split("==") for line in pinned if "==" in line)
    for way in WAYS:
        assert recorded(way)["sdks"].items() <= wanted.items(), way
