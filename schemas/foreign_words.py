"""Shows what may be shown of a foreign service's error text.

Providers quote in their errors what they were sent: a prompt with a user's words, a key, a name. Such a text goes into
logs, verdicts' reasons, dead letters' headers and HTTP answers, so only words of a closed list pass, with the signs
between them. They say what is wrong; what they say it of is in the request.
"""

from __future__ import annotations

import re

LONGEST_READ, LONGEST_SHOWN = 2_000, 200
GAP = "…"
WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """
        a an and are as at be been but by can cannot could did do does don for from has have here if in into is isn it
        its least less like limit limits may more most must my no non none not of off on one only or other out over
        per please s should some such t than that the their there these they this to too under until up was were when
        which while will with within without you your access account accepted again allowed already api argument
        arguments attribute authentication authorization auth available bad balance batch bearer before begins billing
        blank blocked body boolean bucket busy cache call calls capacity category certificate chat check code column
        completion completions conflict connect connection content context conversation credentials credit credits
        create created currently database dataset date default deleted deployment deprecated does down duplicate empty
        encoding endpoint engine enough entity entry error errors evaluator evaluators event exceed exceeded exceeds
        exist exists expected expired experiment failed failure feature feedback field file filter filtered first
        flagged forbidden format found gateway given greater group header headers host id ids image incorrect input
        insufficient integer integers internal invalid item items json key keys large last later length limited list
        load loading long longer loss lower machine maintenance malformed match maximum max media message messages
        metadata method mime minimum min minute minutes missing model models moderation moment name named names
        negative network new null number numbers object output overloaded page parameter parameters parse parsed patch
        payload payment permission permissions plan plans policy policies positive post present processing project
        projects prompt property provided provider proxy put query queue quota range rate reached read reason received
        reduce refused region reject rejected request requests required requires reset resource response retry role
        rule rules running said sampling schema scope score scores seconds second server service session short size
        slow soon source starting state status still stop stopped stream string strings structured supported supports
        system tag tags temperature temporarily text throttled time timeout timed token tokens tool tools top total
        trace traces traffic try type types unable unauthorized unauthenticated unavailable unexpected unique unknown
        unprocessable unsupported up updated upgrade upstream usage use used user users uuid valid validation value
        values version wait window workspace write wrong
        """,
    )
)
_RUNS = re.compile(r"[A-Za-z]+|[^A-Za-z]+")
_NO_SIGN = re.compile(r"[^\s.,:;()_'/-]+")
_GAPS = re.compile(rf"{GAP}(?:[\s.,:;()_'/-]*{GAP})+")


def foreign_words(text: str) -> str:
    """Returns the text with a gap (`…`) for every word, number and sign that may not be shown, in one short line."""
    runs = _RUNS.findall(text[:LONGEST_READ])
    shown = "".join(_run(run) for run in runs) + (GAP if len(text) > LONGEST_READ else "")
    line = " ".join(_GAPS.sub(GAP, shown).split())
    return line if len(line) <= LONGEST_SHOWN else line[: LONGEST_SHOWN - 1] + GAP


def _run(run: str) -> str:
    if run[0].isascii() and run[0].isalpha():
        return run if run.lower() in WORDS else GAP
    return _NO_SIGN.sub(GAP, run)
