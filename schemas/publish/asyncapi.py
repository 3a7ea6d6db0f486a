"""Describes the stream's topics as an AsyncAPI document: who writes what under which key, with headers and examples."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import yaml

from schemas.publish.examples import EXAMPLES
from schemas.topics import Topics

VERSION = "3.1.0"
KAFKA_BINDING = "0.5.0"
JSON_SCHEMA = "application/schema+json;version=draft-2020-12"
SUMMARY = """\
User signals joined to traces, ramp-step requests with their verdicts, and what could not be done. Topics are shown
under the default prefix `rampgate.` (setting `topic_prefix`); the audit topic is PS-5's own (setting `audit_topic`).
Records are JSON in UTF-8. Readers ignore fields they don't know.
"""


class Channel(NamedTuple):
    """`action`: ours. `forms`: names of the schemas a value may have; none: any bytes."""

    action: str
    key: str
    description: str
    forms: tuple[str, ...] = ()
    headers: str | None = None


CHANNELS: Final[dict[str, Channel]] = {
    "thumbs": Channel(
        "receive",
        "response_id, or the item's key",
        "Thumbs of users. A DynamoDB stream record as AWS publishes it, bare or wrapped by Lambda (`Records`), "
        "EventBridge Pipes (`detail`) or Debezium (`payload`); or the plain form. The highest sequence number wins.",
        ("plain-thumb", "stream-record"),
    ),
    "rerolls": Channel("receive", "response_id", "Turns that a user rerolled away from.", ("reroll",)),
    "traces": Channel(
        "receive",
        "response_id",
        "Completed turns. `input` and `output` may be left out; they are then read from Opik. A turn whose `proposal` "
        "names a remediation workflow is sent once more, by Rampgate under its seal, when that has ended.",
        ("trace",),
    ),
    "ramp-steps": Channel(
        "receive",
        "experiment_id",
        "Requests of the rollout controller: may this agent version take this step? A request may be sent again as it "
        "is; another one under the same `request_id` becomes a dead letter.",
        ("ramp-step",),
    ),
    "verdicts": Channel(
        "send",
        "experiment_id",
        "Exactly one for each `request_id`, whatever went wrong. Kept by time, never compacted.",
        ("verdict",),
        headers="verdict-headers",
    ),
    "ramp-commands": Channel(
        "send",
        "agent_id",
        "A safety judge is below its floor in live traffic: take this agent version to 0 %. One for each breach; a "
        "controller that gets one twice stays where it is.",
        ("ramp-command",),
        headers="ramp-command-headers",
    ),
    "judge-scores": Channel(
        "send",
        "trace_id, or item_id",
        "What judges say of live traces and in gates, for the store of traces. At least once: a repeat has the same "
        "`event_id`. A mark or a verdict that rests on a score comes after its event.",
        ("judge-score",),
    ),
    "gate-overrides": Channel(
        "send",
        "repository",
        "The central log of overrides of gates, from the pushes of merges in all repositories. Kept for more than a "
        "year. A rollout's gate reads those that skip it, or let a judge only warn.",
        ("gate-override",),
    ),
    "judge-standing": Channel(
        "send",
        "judge_id/reason/judge_version",
        "What a check found of a judge's version. Compacted: the last record of each key counts. A suspended judge "
        "decides nothing until it passes.",
        ("judge-standing",),
    ),
    "triage": Channel(
        "send",
        "item_id",
        "A quality judge's floor breach that somebody has to look at within a day, with all that was done about it. "
        "Compacted: of each item the record with the longest `history` counts.",
        ("triage",),
    ),
    "evaluations": Channel(
        "send",
        "agent_id",
        "What judges said of a live agent version when somebody, or a schedule, asked (`gate run --respond`). Workers "
        "respond to a floor breach in it as to one in live traffic.",
        ("evaluation",),
    ),
    "user-weeks": Channel(
        "send",
        "week, or week/told",
        "What the users of a closed week said of judges, looked at once, and a note that its news were sent. "
        "Compacted: of a week's records the one whose news were sent counts. It suspends no one.",
        ("user-week",),
    ),
    "dead-letters": Channel(
        "send",
        "as received",
        "Records that could not be done: key, value and headers as they came, and headers that say why.",
        headers="dead-letter-headers",
    ),
    "query-audit": Channel("send", "caller", "One record for each read with purpose=eval.", ("query-audit",)),
}


def document() -> dict[str, Any]:
    topics = Topics()
    channels, operations, messages = {}, {}, {}
    for name, channel in CHANNELS.items():
        address = topics.audit if name == "query-audit" else topics[name]
        named = channel.forms or ("dead-letter",)
        for form in named:
            messages[form] = message(form, channel)
        channels[name] = {
            "address": address,
            "description": channel.description,
            "messages": {form: {"$ref": f"#/components/messages/{form}"} for form in named},
            "bindings": {"kafka": {"topic": address, "bindingVersion": KAFKA_BINDING}},
        }
        operations[f"{channel.action}-{name}"] = {
            "action": channel.action,
            "channel": {"$ref": f"#/channels/{name}"},
            "messages": [{"$ref": f"#/channels/{name}/messages/{form}"} for form in named],
        }
    return {
        "asyncapi": VERSION,
        "id": "urn:rampgate:stream",
        "info": {
            "title": "Rampgate: the stream",
            "version": "1.0.0",
            "description": SUMMARY,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages},
    }


def message(form: str, channel: Channel) -> dict[str, Any]:
    key = {"type": "string", "description": channel.key}
    out: dict[str, Any] = {"name": form}
    if channel.headers and not channel.forms:
        out["contentType"] = "application/octet-stream"
        out["headers"] = schema_at(channel.headers)
        out["payload"] = {"description": "The bytes of the record that could not be done, or none."}
        out["examples"] = [
            {"headers": headers, "payload": '{"value": "sideways"}'} for headers in EXAMPLES[channel.headers]
        ]
    else:
        out["payload"] = schema_at(form)
        out["examples"] = [{"payload": payload} for payload in EXAMPLES[form]]
        if channel.headers:
            out["headers"] = schema_at(channel.headers)
            out["examples"] = [{"headers": EXAMPLES[channel.headers][0]} | example for example in out["examples"]]
    return out | {"bindings": {"kafka": {"key": key, "bindingVersion": KAFKA_BINDING}}}


def schema_at(name: str) -> dict[str, Any]:
    return {"schemaFormat": JSON_SCHEMA, "schema": {"$ref": f"schemas/{name}.json"}}


class _Readable(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML publishes no types
    """Writes lists indented, texts of several lines as blocks, and repeated parts in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def represent_str(self, text: str) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Readable.add_representer(str, _Readable.represent_str)


def asyncapi() -> str:
    body = yaml.dump(document(), Dumper=_Readable, sort_keys=False, allow_unicode=True, width=4_096)
    return f"# Generated by `make docs` from schemas/; don't edit.\n{body}"
