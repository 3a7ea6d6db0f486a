"""All contenders side by side: rounds of each in turn, on the same records, with the same state before each."""

from __future__ import annotations

from typing import Any

from benchmarks.contest import CONTENDERS, PREFIX, QUIX_PYTHON, Round, play, summary
from benchmarks.lab import Failed, Lab
from benchmarks.options import Options, progress, say
from benchmarks.records import Feed
from benchmarks.sink_client import ceiling

GOALS = {"b": 8.0, "d": 1.5, "e": 0.7}


def prepare(lab: Lab, options: Options) -> Feed:
    """Topics, traces in both states, thumbs in the topic."""
    feed = Feed(options.events)
    lab.create_topics(PREFIX, 4)
    with progress() as bars:
        one = bars.add_task("traces into the state", total=feed.turns)
        lab.load(PREFIX, feed, lambda n: bars.advance(one, n))
        two = bars.add_task("thumbs into the topic", total=feed.turns)
        lab.produced = lab.produce(PREFIX + "thumbs", feed.thumbs(), lambda n: bars.advance(two, n))
    return feed


def run(lab: Lab, options: Options) -> dict[str, Any]:
    """Medians by contender, and how many times as fast as each other one ours is."""
    letters = [x for x in options.letters if x != "d" or QUIX_PYTHON.exists()]
    if len(letters) < len(options.letters):
        say("(d) is left out: its environment is missing, `make bench` makes it")
    rounds: dict[str, list[Round]] = {letter: [] for letter in letters}
    with progress() as bars:
        task = bars.add_task("rounds", total=options.rounds * len(letters))
        for number in range(options.rounds):
            # Each round begins with another contender, so that none always follows the same one.
            for letter in letters[number % len(letters) :] + letters[: number % len(letters)]:
                try:
                    one = play(lab, CONTENDERS[letter], options.events)
                except Failed as error:
                    say(f"round {number + 1} of ({letter}) failed and is run again: {error}")
                    one = play(lab, CONTENDERS[letter], options.events)
                rounds[letter].append(one)
                say(f"round {number + 1} ({letter}) {one.rate:,.0f} events/s")
                bars.advance(task)
    found = {letter: summary(of) for letter, of in rounds.items()}
    ratios = {x: found["a"]["rate"] / found[x]["rate"] for x in found if x != "a"} if "a" in found else {}
    return {
        "rounds": options.rounds,
        "names": {letter: CONTENDERS[letter].name for letter in letters},
        "contenders": found,
        "ratios": ratios,
        "goals": GOALS,
        "sink_ceiling_scores_per_second": ceiling(lab.sink),
    }
