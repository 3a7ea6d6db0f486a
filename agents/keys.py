"""Every key in Redis: each family's name, type, life, growth, owner and content, and the key for its parts.

`python -m agents.keys` prints the list as docs/redis-keys.md. No other module spells a key. A key here lacks the
configured prefix (`rg:`), which the store puts in front.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Final, Literal

Key = str
FOREVER = 1 << 46
"""Expiry of a key that lives as long as the store does (ms since 1970, the year 4199)."""

FORM = "2"
"""The number of the join state's stored form. A state of another form lies under other keys: it counts as lost, is
rebuilt from the topics (`streams.rebuild`), and expires."""

HOLE = re.compile(r"<[^>]+>")


@dataclass(eq=False)
class KeyFamily:
    """Keys of one layout, such as `w:<topic>:<partition>`.

    `life` says what ends a key, `growth` how many keys (or members) there are, `owner` is the module that writes them,
    `holds` what is in a value.
    """

    layout: str
    _: KW_ONLY
    type: Literal["string", "hash", "list", "sorted set"] = "string"
    life: str = "as long as the store"
    growth: str = "one"
    owner: str
    holds: str

    def __post_init__(self) -> None:
        self._pieces = HOLE.split(self.layout)
        self._pattern = re.compile(".+".join(map(re.escape, self._pieces)), re.DOTALL)
        FAMILIES.append(self)

    @property
    def prefix(self) -> str:
        """The characters that every key of the family begins with."""
        return self._pieces[0]

    def key(self, *parts: object) -> Key:
        """The key for the layout's parts, in order. Raises ValueError when their number is wrong."""
        first, *rest = self._pieces
        return first + "".join([f"{part}{piece}" for part, piece in zip(parts, rest, strict=True)])

    def matches(self, key: Key) -> bool:
        return self._pattern.fullmatch(key) is not None


FAMILIES: list[KeyFamily] = []
"""All families, in the order of the page."""

_lease = partial(KeyFamily, life="its lease")

TURN = KeyFamily(
    f"t{FORM}:<response id>",
    life="the lookback window and an hour after its last event",
    growth="one for each turn of the lookback window",
    owner="agents.join.step",
    holds="the turn: its trace, its winning thumb and reroll, and what Opik is known to hold",
)
SESSION = KeyFamily(
    f"s{FORM}:<session id>",
    life="an hour, and twice the reroll window, after the session's last turn",
    growth="one for each recent session; at most 200 turns in each",
    owner="agents.join.sessions",
    holds="the session's recent turns, from which rerolls are found",
)
WATERMARK = KeyFamily(
    f"w{FORM}:<topic>:<partition>",
    growth="one for each consumed partition",
    owner="agents.join.batches",
    holds="the offset below which the state has every record of the partition",
)
TOPIC_ID = KeyFamily(
    "wi:<topic>:<partition>",
    growth="one for each consumed partition",
    owner="streams.kafka.start_offsets",
    holds="the id of the topic that the watermark's offsets are of; a topic that is made again has another",
)
COUNTED = KeyFamily(
    f"aw{FORM}:<topic>:<partition>",
    growth="one for each partition of ramp steps",
    owner="agents.ramp_steps",
    holds="the spans of offsets above the watermark whose ramp steps are counted",
)
LET_THROUGH = KeyFamily(
    "ok:<topic>:<partition>",
    life="the lookback window",
    growth="one for each partition that an operator resumed",
    owner="rampgate.commands.partitions",
    holds="the offset below which bad records go to the dead letters however many they are",
)
COVERAGE = KeyFamily(
    f"c{FORM}:<hour>",
    type="hash",
    life="the lookback window and a day",
    growth="one for each hour; some fields for each vertical and agent version",
    owner="agents.join.counting",
    holds="`<vertical>|<token>`: turns of the hour in each coverage class and standing (`agents.join.versions`)",
)
COVERAGE_EDGE = KeyFamily(
    f"e{FORM}:<block>",
    type="hash",
    life="the lookback window and a day",
    growth="one for each five minutes that have turns; some fields a second for each vertical and agent version",
    owner="agents.join.counting",
    holds="`<vertical>|<token>|<second>`: the same for each second, for windows that split an hour",
)
CONSERVATION = KeyFamily(
    f"k{FORM}:<hour>:<kind>",
    type="hash",
    life="the lookback window and a day",
    growth="one for each hour and kind of record; a field for each state and cause",
    owner="agents.join.counting",
    holds="records consumed, records in each of the five states, and gaps: records that Kafka lost before we read them",
)
DUE = KeyFamily(
    f"due{FORM}",
    type="sorted set",
    life="as long as the store; a member leaves when nothing is left to look for",
    growth="one member for each turn that waits",
    owner="streams.redis.state",
    holds="response id -> when to look at the turn again (ms since 1970)",
)
TURN_POOL = KeyFamily(
    f"p{FORM}:<hour>:<vertical and agent version>",
    type="sorted set",
    life="the lookback window and a day",
    growth="up to four for each hour, vertical and agent version; a bounded number of members",
    owner="agents.gates.pools",
    holds="the turns with the lowest numbers, each with the place of its last record, for gates to draw from",
)
POOL_EDGE = KeyFamily(
    f"pe{FORM}:<hour>:<vertical and agent version>",
    type="hash",
    life="as its pool",
    growth="one for each pool that is full",
    owner="agents.gates.pools",
    holds="`edge`: the number from which on turns are left out; `beyond`: how many are",
)
KNOWN_NAME = KeyFamily(
    f"kn{FORM}:<agent version or vertical>",
    life="the lookback window and a day after its last trace or signal",
    growth="one for each agent version, and for each vertical that is not registered",
    owner="agents.newcomers",
    holds="the hour in which the name was first heard of: it is known, after a restart too",
)
KEPT_FORM = 4
"""The number of the form of what gates keep: samples, draws, inputs, candidates' and judges' answers. What a release of
another form kept lies under other keys, and expires."""
FROZEN_SAMPLE = KeyFamily(
    "f:<milestone>:<hash of the request>",
    life="the lookback window",
    growth="one for each gate",
    owner="streams.gates.samples",
    holds="the sample that the gate drew, as JSON",
)
CANDIDATE_ANSWER = KeyFamily(
    "a:<hash of the question>",
    life="the lookback window",
    growth="one for each item that a candidate was run on; at most 256 KiB",
    owner="streams.gates.candidate",
    holds="what the candidate answered, as JSON",
)
PRODUCTION_DRAW = KeyFamily(
    "ql:<hash of the draw>",
    life="its refresh interval and the lookback window",
    growth="one for each agent, vertical, milestone and refresh interval",
    owner="streams.gates.samples",
    holds="ids of the traces whose inputs candidates are run on, 16 bytes each",
)
PRODUCTION_INPUT = KeyFamily(
    f"q{KEPT_FORM}:<trace id>",
    life="as its draw",
    growth="one for each trace of a draw; at most 64 KiB",
    owner="streams.gates.samples",
    holds="what went into the trace, as JSON",
)
PUBLISH_LEASE = _lease(
    "publishing",
    owner="streams.gates.verdict_log",
    holds="the worker whose turn it is to publish verdicts",
)
JUDGE_SCORE = KeyFamily(
    f"j{KEPT_FORM}:<hash of the call>",
    life="`judge_answer_seconds`: two days unless set",
    growth="one for each judge's call",
    owner="streams.redis.score_cache",
    holds="the judge's scores, without its words",
)
LIVE_MARK = KeyFamily(
    "l:<trace id>",
    life="the lookback window",
    growth="one for each trace that live judges have scored; 13 bytes",
    owner="agents.live.judging",
    holds="whether the trace was judged as one voted down, and the place of its record",
)
LIVE_SCORE_INDEX = KeyFamily(
    "vi:<hour>",
    type="sorted set",
    life="the lookback window and a day",
    growth="one for each hour; at most 2,000 members",
    owner="agents.live.scores",
    holds="the live score pools of the hour",
)
LIVE_SCORE_POOL = KeyFamily(
    "v:<hour>:<judge and agent version>",
    type="sorted set",
    life="the lookback window and a day",
    growth="one for each hour, judge version, vertical and agent version; a bounded number of members",
    owner="agents.live.scores",
    holds="live scores of the traces with the lowest numbers, for the watch on floors; beside one below a safety "
    "judge's floor, four bytes each of a hash of its user and of its session",
)
OPERATOR_TOLD = KeyFamily(
    "n:<verdict id>",
    life="the retention that its consumer is given",
    growth="one for each failed verdict, and for each that CI published",
    owner="streams.alerts.operator_news",
    holds="`1`: an operator was told of the verdict, or CI's was counted",
)
REGRESSION_STATE = KeyFamily(
    "regression-state",
    growth="one; an entry for each open breach and each step that is still to be done",
    owner="streams.alerts.regression_watch",
    holds="open breaches, and what is left to do about them, as JSON",
)
REGRESSION_LEASE = _lease(
    "regressions-watched",
    owner="streams.alerts.regression_watch",
    holds="the worker that looks for regressions now",
)
REGRESSION_NOTICES = _lease(
    "regression-notices:<breach>",
    growth="one for each breach whose notices are under way",
    owner="streams.alerts.regression_watch",
    holds="the worker that sends the breach's page, messages and triage item now",
)
TRIAGE_LEASE = _lease(
    "triage-changed",
    owner="streams.alerts.triage_log",
    holds="the process that changes triage items now",
)
USER_WEEKS_LEASE = _lease(
    "user-weeks-looked-at",
    owner="streams.alerts.user_weeks",
    holds="the worker that holds judges against users now",
)
ADOPTED = KeyFamily(
    f"adopted{FORM}",
    owner="streams.rebuild",
    holds="how far what Opik held has been adopted into this state, as JSON; `1` once all is",
)
ADOPTING = _lease(
    "adopting",
    owner="streams.rebuild",
    holds="the worker that adopts what Opik holds now",
)
TAKEOVER = KeyFamily(
    "to:<topic>:<partition>",
    growth="one for each consumed partition",
    owner="streams.quarantine",
    holds="how far it was settled when workers took it over, how often, and what ended workers there",
)
READ_AGAIN = KeyFamily(
    f"read-again{FORM}",
    life="until every partition has been read up to there",
    owner="streams.rebuild",
    holds="partitions whose records are read again after a loss, until which offset, and since when, as JSON",
)
WITHHELD = KeyFamily(
    "withheld",
    life="until a worker with writing on has written what was withheld",
    owner="agents.join.step",
    holds="the last step that withheld signals, or the last round that wrote such: there may be more",
)
DRAINING = _lease(
    "draining",
    owner="streams.maintenance",
    holds="the worker that writes what was withheld now",
)
PROBE = KeyFamily(
    "probe",
    life="a minute",
    owner="streams.redis.fitness",
    holds="nothing of use: each worker writes it every second to see whether Redis takes writes",
)
SEAL_KEY = KeyFamily(
    "seal",
    life="as long as the store; a running worker puts it back into an emptied one",
    growth="one; none where the settings give the key",
    owner="streams.redis.seal_key",
    holds="the key that seals our headers on dead letters and replays",
)
SEALED_BY = KeyFamily(
    "sealed-by",
    life="five minutes after a worker's last look",
    owner="streams.redis.seal_key",
    holds="a hash of the key that the worker that looked last seals with, by which one with another key is noticed",
)
REPLAYED = KeyFamily(
    "replay:<identity>",
    life="a minute while claimed; longer than the lookback window once confirmed",
    growth="one for each dead letter that was replayed",
    owner="streams.dead_letters.replay_ledger",
    holds="the run that has claimed the dead letter, or the place where it was republished",
)
SWEEP = KeyFamily(
    "sweep:<sweep id>",
    type="hash",
    life="a day, or until the sweep is finished",
    growth="one for each sweep that was cut short; a field for each segment",
    owner="streams.sweep.log",
    holds="since when the sweep reads, and how far each segment of the table was read",
)
FEED_STREAM = KeyFamily(
    "feed:<table>:stream",
    growth="one for each table",
    owner="streams.dynamodb.ledger",
    holds="ARN of the stream that was read last",
)
FEED_PLACES = KeyFamily(
    "feed:<table>:places:<stream>",
    type="hash",
    life="as long as the store; a shard's field goes when the stream forgets the shard",
    growth="one for each stream; a field for each shard",
    owner="streams.dynamodb.ledger",
    holds="shard id -> up to where the shard is published",
)
FEED_LEASE = _lease(
    "feed:<table>:lease:<stream>:<shard>",
    growth="one for each shard that is being read",
    owner="streams.dynamodb.ledger",
    holds="the feed that reads the shard",
)
FEED_GAPS = KeyFamily(
    "feed:<table>:gaps",
    type="list",
    growth="one for each table; the newest 100 entries",
    owner="streams.dynamodb.ledger",
    holds="records that may be lost between the table and the topic, as JSON, newest first",
)


# Names of agents and versions are hashed to seven bytes, since each turn keeps them (contracts §3).
AGENT_BYTES, VERSION_BYTES = 3, 4
NAMES: Final = AGENT_BYTES + VERSION_BYTES
AGENT_TEXT: Final = AGENT_BYTES * 4 // 3
"""Characters of an agent's hash as text."""
UNNAMED: Final = bytes(NAMES)
"""The names of a trace that lacks its agent or its version."""
REFUSED: Final = b"\xff" * NAMES
"""The names of an agent version beyond the bound on new ones (`agents.newcomers`)."""


@lru_cache(maxsize=4_096)
def names_of(agent: str, version: str) -> bytes:
    """Return the hashes of an agent's and of its version's name, seven bytes; UNNAMED where either is empty."""
    if not agent or not version:
        return UNNAMED
    whole = f"{len(agent)}:{agent}:{version}".encode(errors="surrogatepass")
    return agent_of(agent) + blake2b(whole, digest_size=VERSION_BYTES, person=b"version").digest()


def agent_of(agent: str) -> bytes:
    return blake2b(agent.encode(errors="surrogatepass"), digest_size=AGENT_BYTES, person=b"agent").digest()


def spelled(names: bytes) -> str:
    """Return hashed names as text: the agent's come first, AGENT_TEXT characters."""
    return urlsafe_b64encode(names).decode().rstrip("=")


def turn_key(response_id: str) -> Key:
    return TURN.prefix + response_id


def pool_place(vertical: str | None, names: str, hour: int) -> tuple[int, str]:
    """The parts of a pool's key, and of its edge's: of one vertical, or of all (None). `names`: the hashed agent and
    version as text (`spelled`), or the agent alone for any version's turns from production."""
    return hour, f"{names}:{'*' if vertical is None else f'={vertical}'}"


def turn_keys(response_ids: Iterable[str]) -> list[Key]:
    """The turns' keys, in order: thousands for a batch, so without a call for each."""
    prefix = TURN.prefix
    return [prefix + response_id for response_id in response_ids]


def turn_ids(keys: Iterable[Key]) -> set[str]:
    """The response ids of those keys that are turns'."""
    prefix = TURN.prefix
    return {key.removeprefix(prefix) for key in keys if key.startswith(prefix)}


def family_of(key: Key) -> KeyFamily | None:
    """The family that declares a key; None for one that nothing declares."""
    return next((family for family in FAMILIES if family.matches(key)), None)


def as_markdown() -> str:
    """The page docs/redis-keys.md."""
    lines = [
        "# Keys in Redis",
        "",
        "Written by `make docs` from `agents/keys.py`; don't edit. Each key begins with the configured prefix (`rg:`).",
        "Redis is rebuilt from the topics when it is emptied. Set `maxmemory-policy noeviction`: a store that forgets",
        "single keys can't be told from one that never had them.",
        "",
        "| key | type | holds | lives for | grows with | written by |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for family in FAMILIES:
        cells = (family.type, family.holds, family.life, family.growth, f"`{family.owner}`")
        lines.append(" | ".join((f"| `{family.layout}`", *(cell.replace("|", "\\|") for cell in cells))) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(as_markdown())
