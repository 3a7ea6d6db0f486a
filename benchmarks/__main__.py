"""`python -m benchmarks [PART...]`: everything, or only some parts. See README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks import profile, report, throughput
from benchmarks.lab import Lab
from benchmarks.options import Options, say

PARTS: dict[str, Callable[[Lab, Options], dict[str, Any]]] = {
    "throughput": throughput.run,
    "profile": profile.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Rampgate's worker, measured.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, help="rounds of each contender (default 5)")
    parser.add_argument("--events", type=int, help="thumbs in the topic (default 300,000)")
    parser.add_argument("--only", default=None, metavar="LETTERS", help="contenders, for example ae")
    parser.add_argument("--quick", action="store_true", help="a short run to see that all works")
    parser.add_argument("--write", action="store_true", help="write the tables into README.md too")
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    options = Options.quick() if chosen.quick else Options()
    given = {"rounds": chosen.rounds, "events": chosen.events, "letters": chosen.only}
    options = replace(options, **{name: value for name, value in given.items() if value})
    results = report.begin(options)
    with Lab() as lab:
        say("services are up")
        throughput.prepare(lab, options)
        for part in chosen.parts or PARTS:
            say(f"— {part}")
            results[part] = PARTS[part](lab, options)
            report.show(part, results[part])
    report.save(results, write=chosen.write)


if __name__ == "__main__":
    main()
