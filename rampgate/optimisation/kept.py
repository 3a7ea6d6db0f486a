"""Keeps what was answered, so that a run that was killed asks nothing twice: the meta-LLM's answer, the candidate's and
the judges'. Each answer is a file of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evalcore.gates.golden import CandidateAnswer, Failed, Pending
from evalcore.scoring.cache import LARGEST
from evalcore.scoring.items import identity
from rampgate.registry.file_writer import replace_file
from streams.gates.candidate import Asking

NO_PROMPT = "the candidate does not say that it used the prompt (prompt_sha256): it takes none"


class Kept:
    """Answers by the hash of their question. What can't be read is asked for again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, *question: object) -> Any:
        """The answer, None without one."""
        try:
            return json.loads(self._file(question).read_text())["answer"]
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def put(self, answer: Any, *question: object) -> None:
        """Keep an answer that can be written as JSON. Raises OSError, also where a link leads out of the folder."""
        file = self._file(question)
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.resolve().is_relative_to(self._folder.resolve()):
            raise PermissionError(None, "is a link that leads out of the holding directory", str(file))
        replace_file(file, json.dumps({"answer": answer}))

    def _file(self, question: Sequence[object]) -> Path:
        text = json.dumps(question, sort_keys=True, default=str)
        name = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        return self._folder / name[:2] / f"{name}.json"


class KeptScores:
    """The judges' answers, as a cache of the one scoring path."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [self._get(key) for key in keys]

    async def put(self, key: str, value: bytes) -> bytes | None:
        if len(value) > LARGEST:
            return None
        if (earlier := self._get(key)) is None:
            self._kept.put(value.decode("latin-1"), "score", key)
        return earlier

    def _get(self, key: str) -> bytes | None:
        found = self._kept.get("score", key)
        return found.encode("latin-1") if isinstance(found, str) else None


class ForkAnswers:
    """The candidate's answers with one prompt, in the place of its own. An answer counts only where it says by the
    prompt's SHA-256 that it was made with it: an endpoint that takes no prompt would answer the same whatever is
    proposed. `asked` counts questions to the candidate."""

    def __init__(self, kept: Kept, asking: Asking, where: Mapping[str, Any], url: str) -> None:
        self._kept, self._asking, self._where = kept, asking, {**where, "url": url}
        self._prompt = hashlib.sha256(str(where["prompt"]).encode()).hexdigest()
        self.asked = 0

    async def to(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, CandidateAnswer | Pending]:
        """The answers by item: kept ones, others asked for when they are waited for. The first of those is asked at
        once: what fails there fails everywhere."""
        pending = self._asking(rows)
        found: dict[str, CandidateAnswer | Pending] = {}
        first = True
        for number, row in enumerate(rows):
            item = identity(row, number)
            about = (self._where, row.get("input"), row.get("metadata"))
            if isinstance(kept := self._kept.get("candidate", *about), dict):
                found[item] = kept
                continue
            to_come = pending[item]
            if not isinstance(to_come, Pending):
                found[item] = to_come
                continue
            asked = Pending(partial(self._answer, to_come.answer, about))
            found[item] = await asked.answer() if first else asked
            first = False
        return found

    async def _answer(self, ask: Callable[[], Awaitable[CandidateAnswer]], about: tuple[Any, ...]) -> CandidateAnswer:
        self.asked += 1
        answer = await ask()
        if isinstance(answer, Failed):
            return answer
        if answer.get("prompt_sha256") != self._prompt:
            return Failed(NO_PROMPT)
        given = {name: value for name, value in answer.items() if name != "prompt_sha256"}
        self._kept.put(given, "candidate", *about)
        return given
