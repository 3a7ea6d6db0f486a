"""Keeps what was answered, so that a run that was killed asks nothing twice: the meta-LLM's answer, the candidate's and
the judges'."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from evalcore.gates.golden import CandidateAnswer, Failed, Pending
from evalcore.scoring.cache import LARGEST, ScoreCache
from evalcore.scoring.items import identity
from rampgate.store.sealed import SealedStore
from streams.gates.candidate import Asking

NO_PROMPT = "the candidate does not say that it used the prompt (prompt_sha256): it takes none"
LONGEST: Final = 16 << 20
"""Bytes of an answer of the meta-LLM or the candidate; a longer one is asked for again."""


class Kept:
    """What `rampgate.store` keeps of one run. What can't be read is asked for again."""

    def __init__(self, store: SealedStore) -> None:
        self.scores: ScoreCache = store.kind("scores", LARGEST)
        """The judges' answers."""
        self._said = store.kind("answers", LONGEST)

    async def get(self, *question: object) -> Any:
        """The answer of the meta-LLM or the candidate, None without one. Raises Unavailable."""
        (found,) = await self._said.get_many([_hashed(question)])
        return None if found is None else json.loads(found)

    async def put(self, answer: Any, *question: object) -> None:
        """Keep an answer that can be written as JSON. Raises Unavailable."""
        await self._said.put(_hashed(question), json.dumps(answer).encode())


def _hashed(question: Sequence[object]) -> str:
    text = json.dumps(question, sort_keys=True, default=str)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


class ForkAnswers:
    """The candidate's answers with one prompt, in the place of its own. An answer counts only where it says by the
    prompt's SHA-256 that it was made with it: an endpoint that takes no prompt would answer the same whatever is
    proposed. `asked` counts questions to the candidate; answers of `again` are others than before."""

    def __init__(self, kept: Kept, asking: Asking, where: Mapping[str, Any], url: str, *, again: bool = False) -> None:
        self._kept, self._asking = kept, asking
        self._where = {**where, "url": url} | ({"again": True} if again else {})
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
            if isinstance(kept := await self._kept.get("candidate", *about), dict):
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
        await self._kept.put(given, "candidate", *about)
        return given
