"""Publishes the contracts: a JSON Schema of every form on a topic or in an answer, an AsyncAPI document, and the JSON
Schemas of the registry's files (`schemas.publish.file_schemas`).

`python -m schemas.publish.contracts [FOLDER]` writes `schemas/*.json` and `asyncapi.yaml` into the folder (default
`docs`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from schemas.answers import Conservation, CoverageAnswer, EvalConfig, Refresh, TurnView
from schemas.checks.evaluation import Evaluation
from schemas.checks.standing import StandingRecord
from schemas.checks.triage import TriageItem
from schemas.checks.user_week import UserWeek
from schemas.events import PlainThumb, RerollEvent, StreamRecord, TraceEvent
from schemas.publish import file_schemas
from schemas.publish.asyncapi import asyncapi
from schemas.publish.examples import EXAMPLES
from schemas.ramp_steps import RampStep
from schemas.verdicts import Verdict
from schemas.wire_forms import (
    DeadLetterHeaders,
    GateOverride,
    MetadataDetails,
    QueryAudit,
    RampCommand,
    RampCommandHeaders,
    ScoreEvent,
    TraceDetails,
    VerdictHeaders,
    Verdicts,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Form(NamedTuple):
    """`mode`: whether we read the form (validation) or write it (serialization)."""

    title: str
    type: Any
    mode: Literal["validation", "serialization"] = "validation"


FORMS: Final[dict[str, Form]] = {
    "plain-thumb": Form("A thumb in the plain form", PlainThumb),
    "stream-record": Form("A DynamoDB stream record of the thumbs table", StreamRecord),
    "reroll": Form("A turn rerolled away from", RerollEvent),
    "trace": Form("A completed trace", TraceEvent),
    "ramp-step": Form("A request to take the next step of a rollout", RampStep),
    "verdict": Form("The verdict on a ramp-step request", Verdict, "serialization"),
    "verdict-headers": Form("Headers of a verdict", VerdictHeaders, "serialization"),
    "ramp-command": Form("The command to take an agent version to 0 %", RampCommand, "serialization"),
    "ramp-command-headers": Form("Headers of a ramp command", RampCommandHeaders, "serialization"),
    "judge-score": Form("What a judge says of a trace or an item", ScoreEvent, "serialization"),
    "gate-override": Form("An override of a gate that held", GateOverride, "serialization"),
    "judge-standing": Form("What a check found of a judge", StandingRecord, "serialization"),
    "triage": Form("A floor breach that somebody has to look at", TriageItem, "serialization"),
    "user-week": Form("What a closed week's users said of judges", UserWeek, "serialization"),
    "evaluation": Form("What judges said of a live agent version when asked", Evaluation, "serialization"),
    "dead-letter-headers": Form("Headers of a dead letter", DeadLetterHeaders, "serialization"),
    "query-audit": Form("A read for evaluation", QueryAudit, "serialization"),
    "coverage": Form("Answer of GET /coverage and rampgate coverage", CoverageAnswer, "serialization"),
    "conservation": Form("Answer of GET /conservation and rampgate conservation", Conservation, "serialization"),
    "turn": Form("Answer of GET /turns/{response_id} and rampgate turn", TurnView, "serialization"),
    "eval-config": Form("Answer of GET /eval-config", EvalConfig, "serialization"),
    "refresh": Form("Answer of POST /refresh", Refresh, "serialization"),
    "verdicts": Form("Answer of GET /verdicts", Verdicts, "serialization"),
}


class _Generator(GenerateJsonSchema):
    """What we write of a dataclass we write whole, also where a field has a default."""

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        written = self.mode == "serialization" and field["type"] == "dataclass-field"
        return written or super().field_is_required(field, total)


def schema(name: str) -> dict[str, Any]:
    """The form's JSON Schema. It is open: unknown fields are for readers of tomorrow."""
    form = FORMS[name]
    body: dict[str, Any] = TypeAdapter(form.type).json_schema(mode=form.mode, schema_generator=_Generator)
    if name == "trace":
        add(body, body, TypeAdapter(TraceDetails).json_schema())
        add(body, body["$defs"]["TraceMetadata"], TypeAdapter(MetadataDetails).json_schema())
    head = {"$schema": DIALECT, "$id": f"urn:rampgate:schema:{name}", "title": form.title}
    fields: dict[str, Any] = untitled(body)
    return head | fields | {"examples": EXAMPLES[name]}


def untitled(value: Any) -> Any:
    """Without the titles that pydantic makes from the names."""
    if isinstance(value, dict):
        return {key: untitled(inner) for key, inner in value.items() if not (key == "title" and isinstance(inner, str))}
    return [untitled(inner) for inner in value] if isinstance(value, list) else value


def add(body: dict[str, Any], place: dict[str, Any], more: dict[str, Any]) -> None:
    """Fields that a producer may send and nothing here reads."""
    place["properties"] |= more["properties"]
    body.setdefault("$defs", {}).update(more.get("$defs", {}))


def files() -> dict[str, str]:
    """Path below the documentation's folder -> content."""
    bodies = {name: schema(name) for name in FORMS}
    bodies |= {name: file_schemas.schema(name) for name in (*file_schemas.FILES, *file_schemas.WRITTEN)}
    texts = {f"schemas/{name}.json": json.dumps(body, indent=2, ensure_ascii=False) for name, body in bodies.items()}
    return {path: f"{text}\n" for path, text in texts.items()} | {"asyncapi.yaml": asyncapi()}


def main(folder: Path) -> None:
    (folder / "schemas").mkdir(parents=True, exist_ok=True)
    for path, text in files().items():
        (folder / path).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
