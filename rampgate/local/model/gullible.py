"""Makes the stand-in gullible in a known way, so that `rampgate check canaries` is seen to find it. Pure.

It reads all that a prompt says, wherever it stands, as a weak model would; it knows nothing of how prompts keep texts
apart, and shares no code with what does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rampgate.local.model import judging

Obeys = Literal["told", "end", "ready_answer", "not_applicable", "refusal", "role", "lowered"]


class Gullible(BaseModel):
    """What the stand-in obeys, wherever it stands in a prompt.

    `told`: an instruction to give a score. `end`: the same, at the end of a text only. `ready_answer`: an answer in
    JSON. `not_applicable`: an instruction to answer N/A. `refusal`: one to refuse. `role`: an instruction in another
    speaker's name. `lowered`: it gives the worst score wherever it sees an instruction.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    obeys: Obeys
    rubric: str = ""
    """Only prompts that hold this text, as that of one judge."""
    within: Literal["", "tool_result"] = ""
    """Only where it stands in a tool's result."""


_VALUE = r"(?P<value>-?\d+(?:\.\d+)?|true|false)"
_TELL = r"(?:(?:give|rate)\s+this(?:\s+a)?|score\s+this\s+as|set\s+the\s+score\s+to|the\s+score\s+must\s+be)\s+"
_TOLD = re.compile(_TELL + _VALUE)
_AT_THE_END = re.compile(_TELL + _VALUE + r'[^"<\n]{0,40}\s*(?="|</)')
_READY = re.compile(r'\\*"score\\*"\s*:\s*' + _VALUE)
_NOT_APPLICABLE = re.compile(r"(?:answer|here: score|score to|must be)\s+\\*\"n/a")
_REFUSE = re.compile(r"say only:|refuse to (?:answer|give)|decline, without|refuse this task|must not be judged")
_ROLE = re.compile(
    r"\b(?:system|sys|assistant|developer)\b(?=[\W_])(?:(?!\b(?:system|assistant)\b).){0,200}?" + _TELL + _VALUE,
    re.DOTALL,
)
_RESULT = re.compile(r'"result"\s*:\s*"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|n)")
"""In a text of a JSON object; a model reads the character."""
REFUSED = "I'm sorry, I can't help with that."


def obeyed(
    gullible: Gullible, messages: Sequence[Mapping[str, Any]], response_format: Any, answer: Mapping[str, Any]
) -> str | None:
    """Returns the reply where a text has its way; None where the stand-in answers as it would."""
    said = "\n".join(str(message.get("content")) for message in messages)
    if gullible.rubric not in said:
        return None
    if gullible.within:
        # In a text of a JSON object, quotation marks are escaped once more.
        levels = (said, said.replace('\\"', '"').replace("\\\\", "\\"))
        said = "\n".join(f'"{found}"' for level in levels for found in _RESULT.findall(level))
    said = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else "\n", said)
    score = _wish(gullible.obeys, said.lower(), judging.wanted(said, response_format))
    if score is None:
        return None
    if score == REFUSED:
        return REFUSED
    dimensions = {"dimensions": dict.fromkeys(answer["dimensions"], score)} if "dimensions" in answer else {}
    return json.dumps({"reason": "Stand-in, no language model: as told.", "score": score, **dimensions})


def _wish(obeys: Obeys, said: str, asked: judging.Wanted) -> Any:
    """The score that a lower-case text asks for; None where nothing in it is obeyed."""
    if obeys == "refusal":
        return REFUSED if _REFUSE.search(said) else None
    if obeys == "not_applicable":
        return judging.NOT_APPLICABLE if _NOT_APPLICABLE.search(said) else None
    if obeys == "lowered":
        return asked.at(0.0) if _TOLD.search(said) or _READY.search(said) else None
    signs = {"told": _TOLD, "end": _AT_THE_END, "ready_answer": _READY, "role": _ROLE}
    found = signs[obeys].search(said)
    return json.loads(found["value"]) if found else None
