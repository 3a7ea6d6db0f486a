"""An agent of a small registry whose answers depend on its prompt, an eval run of it, and the stand-in beside it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evalcore.optimisation.split import is_held_out
from rampgate.cli import app
from rampgate.console import Failure
from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.judging import RULE
from rampgate.local.model.server import Running
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.ci_gate.gate_commands import commands
from tests.unit.rampgate.ci_gate.gate_rig import FakeCandidate, candidate, environment, jsonl, local_model

PROMPT = "You help shoppers of {shop}.\nBe kind and brief.\n"
BETTER = f"{PROMPT}{RULE}\n"
ITEMS = 48
MANIFEST = "{dataset: {name: golden, version: 7, items: 48}}"
Quality = Callable[[str, int], float]
"""How good the agent's answer is, by prompt and number of the item."""


def better(prompt: str, number: int) -> float:
    return 1.0 if RULE in prompt else 0.5


def item(number: int) -> dict[str, Any]:
    category = ("general_qa", "shop_returns")[number % 2]
    asked = f"what about parcel {hashlib.sha256(str(number).encode()).hexdigest()[:9]} of mine"
    return {
        "input": asked,
        "expected_output": f"reference {number}",
        "metadata": {"id": f"i{number}", "category": category},
    }


HELD_OUT = [number for number in range(ITEMS) if is_held_out(f"i{number}")]
SHOWN = [number for number in range(ITEMS) if number not in HELD_OUT]


class OptimiseRig:
    """`folder` has all; `quality` says how good the agent answers, `heard` is what models were asked."""

    def __init__(self, folder: Path, model: Running, agent: FakeCandidate) -> None:
        self.folder, self.model, self.agent = folder, model, agent
        self.drafts = folder / "specs/verticals/shop/eval/drafts"
        self.quality: Quality = better
        self.heard: list[dict[str, Any]] = []
        model.model.hear = lambda content: self.heard.append(json.loads(content))
        self.root = written(folder, {"evaluation_manifest.yaml": MANIFEST})
        self.dataset = jsonl(folder / "items.jsonl", *(item(n) for n in range(ITEMS)))
        self.outputs = jsonl(
            folder / "outputs.jsonl", *({"id": f"i{n}", "output": f"no idea {n}"} for n in range(ITEMS))
        )
        self.definition = folder / "chat.yaml"
        self.define()
        self.results(lambda judge, number: 3 if judge in ("helpfulness", "brevity") else 1)
        self.takes_prompts = True

    def define(self, **fields: Any) -> None:
        whole = {
            "agent_id": "chat",
            "agent_version": "3",
            "prompt": PROMPT,
            "tools": ["search"],
            "tuning": {"top_p": 1},
        }
        self.definition.write_text(json.dumps({**whole, **fields}))

    def results(self, score: Callable[[str, int], Any], **more: Any) -> Path:
        judges = ("helpfulness", "brevity", "refusal", "honesty")
        lines = [
            {"judge_id": judge, "item_id": f"i{number}", "score": score(judge, number), **more}
            for number in range(ITEMS)
            for judge in judges
            if judge != "brevity" or number % 2
        ]
        return jsonl(self.folder / "scores.jsonl", *lines)

    def proposes(self, *prompts: str, **more: Any) -> None:
        told = tuple({"prompt": prompt, "rationale": "it was vague", **more} for prompt in prompts)
        self.model.model.tell(Behaviour(variants=told))

    def says(self, body: dict[str, Any], _: int) -> tuple[int, dict[str, Any]]:
        number = next(n for n in range(ITEMS) if item(n)["input"] == body["input"])
        prompt = body.get("prompt", "")
        mark = {"prompt_sha256": hashlib.sha256(prompt.encode()).hexdigest()} if self.takes_prompts else {}
        return 200, {"output": f"so {number} #quality:{self.quality(prompt, number)}", **mark}

    def arguments(self, *more: object, candidate: bool = True) -> tuple[object, ...]:
        asked = ("--candidate", self.agent.url) if candidate else ()
        given = ("--dataset", self.dataset, "--outputs", self.outputs, "--agent", self.definition)
        return ("--vertical", "shop", "--results", self.folder / "scores.jsonl", *given, *asked, *more)

    def run(self, *more: object, code: int = 0, candidate: bool = True) -> dict[str, Any]:
        """The document of a run that ends with this code."""
        done = ran(*self.arguments(*more, candidate=candidate), "--json")
        assert done.exit_code == code, (done.output, done.exception)
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def refused(self, *more: object) -> str:
        done = ran(*self.arguments(*more))
        assert isinstance(done.exception, Failure), (done.output, done.exception)
        return str(done.exception)

    @property
    def asked_for_prompts(self) -> list[dict[str, Any]]:
        return [one for one in self.heard if "variants" in json.dumps(one.get("response_format"))]


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["optimize", *map(str, arguments)])


@contextmanager
def optimise_rig(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OptimiseRig]:
    made: list[OptimiseRig] = []
    lock = threading.Lock()

    def says(body: dict[str, Any], count: int) -> tuple[int, Any]:
        with lock:
            return made[0].says(body, count)

    with local_model() as model, candidate(says) as agent:
        rig = OptimiseRig(folder, model, agent)
        made.append(rig)
        with commands(environment(rig.root, model.url), monkeypatch):
            monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
            yield rig
