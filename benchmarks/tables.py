"""Each part's results as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents.keys import FAMILIES

Found = dict[str, Any]


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def throughput(found: Found) -> list[str]:
    head = ["", "contender", "events/s (lowest–highest)", "from process start", "first score", "(a) is … times", "goal"]
    rows, cpu = [], []
    for letter, one in found["contenders"].items():
        ratio, goal = found["ratios"].get(letter), found["goals"].get(letter)
        spread = sorted(r["rate"] for r in one["rounds"])
        rows.append(
            [
                letter,
                found["names"][letter],
                f"**{one['rate']:,.0f}** ({spread[0]:,.0f}–{spread[-1]:,.0f})",
                f"{one['rate_from_start']:,.0f}",
                f"{one['first_score_seconds']:.1f} s",
                f"{ratio:.2f}" if ratio else "",
                f"{goal:g}" if goal else "",
            ]
        )
        cpu.append([letter, *(f"{one['cpu_us'][name]:.1f}" for name in ("worker", "redis", "kafka", "sink"))])
    return [
        *table(head, rows),
        "",
        f"Medians of {found['rounds']} rounds. The sink alone takes {found['sink_ceiling_scores_per_second']:,.0f} "
        "scores a second. Microseconds of CPU that an event costs in each process:",
        "",
        *table(["", "worker", "Redis", "Kafka", "sink"], cpu),
    ]


def profile(found: Found) -> list[str]:
    rows = [[stage, f"{us:.2f}", f"{share:.1%}"] for stage, us, share in found["stages"]]
    rows.append(["**all**", f"**{sum(us for _, us, _ in found['stages']):.2f}**", ""])
    busy = ", ".join(f"{name} {share:.0%}" for name, share in found["busy"].items() if share >= 0.005)
    return [
        *table(["stage of (a)", "µs an event", "share"], rows),
        "",
        f"{found['events_per_second_under_the_sampler']:,.0f} events/s under the sampler. Threads busy: {busy}. "
        f"Garbage collection: {found['gc_share']:.1%} of the time, inside the stages.",
        "",
        *table(["function", "µs an event"], [[f"`{name}`", f"{us:.2f}"] for name, us in found["functions"][:15]]),
    ]


def latency(found: Found) -> list[str]:
    goals, rows = found["goals"], []
    for one in found["measured"]:
        stored = one["to_stored"]
        rows.append(
            [
                f"{one['rate']:,.0f}/s" + (" (half the top rate)" if one["load"] == "half" else ""),
                milliseconds(one["sink_delay"]),
                milliseconds(stored["p50"]),
                f"**{milliseconds(stored['p95'])}**",
                milliseconds(goals[one["load"]]),
                f"{one['events']:,}",
            ]
        )
    return table(["rate", "the sink answers after", "p50", "p95", "goal for p95", "events"], rows)


def scaling(found: Found) -> list[str]:
    first = found["measured"][0]["rate"]
    rows = [
        [str(one["workers"]), f"{one['rate']:,.0f}", f"{one['rate'] / first:.2f}", f"{one['machine_busy']:.0%}"]
        for one in found["measured"]
    ]
    head = ["workers", "events/s", "times one", f"machine busy ({found['cores']} cores, all processes)"]
    return [*table(head, rows), "", f"{found['partitions']} partitions, medians of {found['rounds']} rounds."]


def restart(found: Found) -> list[str]:
    rows = [
        [text, f"{found['seconds'][case]:.1f} s", ", ".join(f"{x:.1f}" for x in found["all"][case])]
        for case, text in found["cases"].items()
    ]
    stopping = f"Stopping with SIGTERM took {found['stop_seconds']:.1f} s."
    return [*table(["start to first score", "median", "each"], rows), "", stopping]


def memory(found: Found) -> list[str]:
    long_run, goal = found["worker"], found["goal_bytes"]
    rows = [
        [
            f"{one['turns']:,}",
            f"{one['span_seconds'] / 3600:,.0f} h",
            f"{one['with_trace']:.0f}",
            f"**{one['with_thumb']:.0f}**",
            str(goal),
        ]
        for one in found["redis"]
    ]
    sizes = ", ".join(f"{megabytes:.0f}" for _, megabytes in long_run["resident_mb_at"])
    return [
        *table(["turns", "spread over", "bytes a turn with trace", "and thumb", "goal"], rows),
        "",
        f"The worker's resident memory at each tenth of {long_run['events']:,} events, in MB: {sizes}; "
        f"peak {long_run['resident_mb_peak']:.0f}.",
    ]


def live(found: Found) -> list[str]:
    """The families that take at least a byte a turn."""
    lives = {family.layout: family.life for family in FAMILIES}
    rows = [
        [f"`{name}`", f"{found['keys'][name]:.2f}", f"**{size:.0f}**", lives[name]]
        for name, size in found["bytes"].items()
        if size >= 1
    ]
    return [
        *table(["family", "keys a turn", "bytes a turn", "kept for"], rows),
        "",
        f"{found['turns']:,} turns with trace, thumb and the scores of the shipped judges, by `MEMORY USAGE`.",
    ]


def flat(found: Found) -> list[str]:
    rows = [
        [
            f"{one['events']:,}",
            f"{one['judged']:,.0f}",
            f"{one['resident_mb']:.0f}",
            f"{one['redis_bytes'] / 1e6:.1f}",
            f"{one['redis_bytes_per_turn']:,}",
            f"{one['series']:,}",
            f"{one['metrics_kb']:.0f}",
        ]
        for one in found["tenths"]
    ]
    heads = ["events", "judged", "resident MB", "Redis MB", "Redis bytes a turn", "series", "/metrics kB"]
    return [
        *table(heads, rows),
        "",
        f"{found['turns']:,} turns; quality judges sample {found['rate']:.0%} of the traces, and "
        f"{found['voted_down']:.0%} of the turns are voted down; {found['seconds']:,} s in all.",
    ]


def registry(found: Found) -> list[str]:
    goals, measured = found["goals"], {f"`{name}`": one for name, one in found["alone"].items()}
    measured["by id, while new versions come in one after the other"] = found["during_refresh"]
    measured["by id, beside a thread that only counts"] = found["beside_a_busy_thread"]
    rows = [
        [name, f"**{one['median_us']:.2f}**", f"{one['p99_us']:.2f}", f"{one['p999_us']:.1f}", f"{one['max_us']:,.0f}"]
        for name, one in measured.items()
    ]
    validate = found["validate"]
    return [
        *table(["lookup", "median µs", "p99 µs", "p99.9 µs", "longest µs"], rows),
        "",
        f"Goals: median below {goals['median_us']:g} µs, p99 below {goals['p99_us']:g} µs. Medians of "
        f"{found['rounds']} rounds, of the longest the longest; {found['calls']:,} calls of each kind a round, and "
        f"{found['refreshes']:.0f} refreshes. The clock's own two readings and the call from a loop, "
        f"{found['clock_us']:.2f} µs, are in each figure. Files opened or folders listed by 10,000 lookups: "
        f"{found['files_opened']:.0f}.",
        "",
        f"**{found['files']} rule files** validate in **{validate['seconds']:.2f} s**, of which "
        f"{validate['cpu_seconds']:.2f} s are CPU; the first time in a process in {validate['first_seconds']:.2f} s "
        f"(goal: {goals['validate_seconds']:g} s). The shipped registry is read, checked and built in "
        f"{found['load_seconds'] * 1000:.0f} ms, 50 ms of it a pause to see that its files stand still.",
    ]


def judges(found: Found) -> list[str]:
    goals, at_once = found["goals"], found["at_once"]
    head = [
        "",
        "bound",
        "took",
        "times the bound",
        "goal",
        "CPU a call",
        "loop busy at most",
        "again, from Redis",
        "goal",
    ]
    rows = []
    for one in found["measured"]:
        calls = one["items"] * one["judges"]
        way = "" if one["layer"] == "direct" else ", through Opik's model layer (litellm)"
        rows.append(
            [
                f"{one['items']} items × {one['judges']} judges, {milliseconds(one['latency'])} each{way}",
                f"{one['bound']:.2f} s",
                f"{one['cold_seconds']:.2f} s",
                f"**{one['cold_seconds'] / one['bound']:.2f}**",
                f"{goals['ratio']:g}",
                f"{one['cold_cpu'] / calls * 1000:.1f} ms",
                milliseconds(one["cold_lag"]),
                f"**{one['warm_seconds']:.2f} s**",
                f"{goals['warm_seconds']:g} s",
            ]
        )
    return [*table(head, rows), "", f"{at_once} calls at once; medians of {found['rounds']} rounds."]


def candidate(found: Found) -> list[str]:
    one = found["measured"]
    bound, both = max(one["candidate"], one["judges"]), one["candidate"] + one["judges"]
    head = ["", "the candidate's bound", "the judges'", "took", "times the larger", "one after the other"]
    told = (
        f"{found['items']} items, {found['seconds']:g} s an answer, {found['asked_at_once']} at once; "
        f"{one['calls']:g} calls of {found['latency']:g} s"
    )
    times = [f"{one['candidate']:.1f} s", f"{one['judges']:.1f} s", f"{one['took']:.1f} s"]
    rows = [[told, *times, f"**{one['took'] / bound:.2f}**", f"{both / bound:.2f} at least"]]
    return [*table(head, rows), "", f"{found['at_once']} calls at once; medians of {found['rounds']} rounds."]


def verdicts(found: Found) -> list[str]:
    goal, at_once = found["goals"]["decided_p95"], found["at_once"]
    parts = {
        "record_to_verdict": "from the request handed to Kafka to the verdict in a plain consumer's hands",
        "inside": "of it, from the request's decoding to its published verdict",
        "deciding": "of that, deciding (`evidence.duration_seconds`)",
    }
    places = {"in_memory": "the worker's memory", "in_redis": "Redis alone"}
    before = found["in_memory"]
    rows = [
        [
            where,
            text,
            milliseconds(found[place][part]["p50"]),
            f"**{milliseconds(found[place][part]['p95'])}**",
            milliseconds(found[place][part]["max"]),
            milliseconds(goal) if part == "inside" else "",
        ]
        for place, where in places.items()
        for part, text in parts.items()
    ]
    shares = [
        [
            text,
            f"{min(one['took']):.1f} s",
            f"{max(one['took']):.1f} s",
            f"**{one['spread']:.2f}**",
            ", ".join(f"{size} traces: {share:.2f}" for size, share in one["share"].items()),
        ]
        for text, one in (
            (f"{at_once['gates']} alike", at_once["equal"]),
            (f"a small one beside {at_once['gates'] - 1} larger", at_once["small"]),
        )
    ]
    return [
        *table(["scores in", "", "p50", "p95", "longest", "goal for p95"], rows),
        "",
        f"{before['requests']} requests each, one after another, about {found['sample']} traces × {found['judges']} "
        f"judges, all scored before. The first, which asked the model, took {before['first']:.1f} s.",
        "",
        *table(["gates at once", "first verdict", "last verdict", "slowest / fastest", "times its fair share"], shares),
        "",
        f"{milliseconds(at_once['latency'])} a call; a fair share is what the model's places would give it, were they "
        "shared evenly and nothing else cost time.",
    ]


def start(found: Found) -> list[str]:
    rows = [
        [
            f"`{name}`",
            f"**{one['seconds']:.2f} s**",
            f"{one['cpu_seconds']:.2f} s",
            f"{found['goals'][name]:g} s" if name in found["goals"] else "",
        ]
        for name, one in found["commands"].items()
    ]
    return [*table(["", "time", "CPU", "goal"], rows), "", f"Medians of {found['rounds']} rounds."]


def scores(found: Found) -> list[str]:
    goals, taken = found["goals"], found["arrays"]
    named = {
        "inversion": "inversion: 12 judges × 100,000 pairs",
        "drift": "drift: 50 judges × 100,000 scores",
        "suite": "suite: 2,000 cases, 20 slices, 10,000 resamples",
        "spec": "spec: 10,000 stored traces through the layers without a model",
    }  # results that were kept from before a row was measured have none for it
    rows = [
        [what, f"**{taken[name]:.2f} s**", "", f"{goals[name]:g} s"] for name, what in named.items() if name in taken
    ]
    for name, seconds in taken.items():
        if name.startswith("alpha"):
            _, level, values = name.split(", ")
            many = "5 values" if values == "coarse" else "about 10,000 values"
            what = f"alpha with its interval, {level}: 10,000 items × 5, {many}"
            rows.append([what, f"**{seconds:.2f} s**", "", f"{goals['alpha']:g} s"])
    for name, one in found["files"].items():
        limit = f"{goals['lines']:g} s, {goals['lines_mib'] / 1024:g} GiB"
        what = f"`check {name}`, {found['lines']:,} lines"
        rows.append(
            [what, f"**{one['seconds']:.1f} s** ({one['cpu_seconds']:.1f} s CPU)", f"{one['mib']:,.0f} MiB", limit]
        )
    head = ["", "time", "memory", "goal"]
    return [*table(head, rows), "", f"Medians of {found['rounds']} rounds; of memory the most."]


def suites(found: Found) -> list[str]:
    goals, rows = found["goals"], []
    for cases, one in found["measured"].items():
        ratio = one["cold_seconds"] / one["bound"]
        rows.append(
            [
                f"{int(cases):,} cases", f"{one['bound']:.1f} s", f"**{one['cold_seconds']:.1f} s** ({ratio:.2f} ×)",
                f"{one['cold_cpu']:.1f} s", f"{one['warm_seconds']:.2f} s", f"{one['mib']:,.0f} MiB",
            ]
        )  # fmt: skip
    small, *_, middle, large = found["measured"].values()
    head = ["", "calls × latency ÷ at once", "cold", "CPU", "again, all kept", "memory"]
    return [
        *table(head, rows),
        "",
        f"{found['samples']} samples, {found['judges']} judges of {found['latency'] * 1000:g} ms, {found['at_once']} "
        f"calls at once; whole processes, medians. Goals: cold within {goals['ratio']:g} ×; 50 cases again under "
        f"{goals['warm_seconds']:g} s (**{small['warm_seconds']:.2f} s**); memory of 2,000 cases at most "
        f"{goals['memory_ratio']:g} × that of 200 (**{large['mib'] / middle['mib']:.2f} ×**).",
    ]


TABLES: dict[str, Callable[[Found], list[str]]] = {
    "throughput": throughput,
    "profile": profile,
    "latency": latency,
    "scaling": scaling,
    "restart": restart,
    "start": start,
    "memory": memory,
    "live": live,
    "flat": flat,
    "registry": registry,
    "judges": judges,
    "candidate": candidate,
    "verdicts": verdicts,
    "scores": scores,
    "suites": suites,
}
TITLES = {
    "throughput": "Events a second, side by side",
    "profile": "Where our worker's time goes",
    "latency": "From event to stored score",
    "scaling": "More workers",
    "restart": "Restarts",
    "start": "Start-up",
    "memory": "Memory",
    "live": "Redis with live judging",
    "flat": "Flat with live judging on",
    "registry": "The registry",
    "judges": "Judges",
    "candidate": "Candidate and judges side by side",
    "verdicts": "Verdicts",
    "scores": "Checks of score files",
    "suites": "Suites",
}
