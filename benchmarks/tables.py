"""Each part's results as Markdown tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from agents.keys import FAMILIES

Found = dict[str, Any]


class Cells(Formatter):
    """`str.format`, where `ms` shows seconds as milliseconds."""

    def format_field(self, value: Any, format_spec: str) -> str:
        return f"{value * 1000:,.0f} ms" if format_spec == "ms" else str(super().format_field(value, format_spec))


def table(head: str, row: str, found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns the lines of a table: `head` has its columns, `row` what they show of each thing found."""
    rule = " | ".join(["---"] * (head.count(" | ") + 1))
    return [f"| {line} |" for line in (head, rule, *(Cells().vformat(row, (), one) for one in found))]


def said(form: str, found: Mapping[str, Any]) -> str:
    return Cells().vformat(form, (), found)


def throughput(found: Found) -> list[str]:
    rows = []
    for letter, one in found["contenders"].items():
        ratio, goal = found["ratios"].get(letter), found["goals"].get(letter)
        rates = [each["rate"] for each in one["rounds"]]
        shown = {"ratio": f"{ratio:.2f}" if ratio else "", "goal": f"{goal:g}" if goal else ""}
        rows.append(one | shown | {"letter": letter, "name": found["names"][letter], "of": (min(rates), max(rates))})
    return [
        *table(
            " | contender | events/s (lowest–highest) | from process start | first score | (a) is … times | goal",
            "{letter} | {name} | **{rate:,.0f}** ({of[0]:,.0f}–{of[1]:,.0f}) | {rate_from_start:,.0f} | "
            "{first_score_seconds:.1f} s | {ratio} | {goal}",
            rows,
        ),
        "",
        f"Medians of {found['rounds']} rounds. The sink alone takes {found['sink_ceiling_scores_per_second']:,.0f} "
        "scores a second. Microseconds of CPU that an event costs in each process:",
        "",
        *table(
            " | worker | Redis | Kafka | sink",
            "{letter} | {cpu_us[worker]:.1f} | {cpu_us[redis]:.1f} | {cpu_us[kafka]:.1f} | {cpu_us[sink]:.1f}",
            rows,
        ),
    ]


def profile(found: Found) -> list[str]:
    rows = [{"name": stage, "us": f"{us:.2f}", "share": f"{share:.1%}"} for stage, us, share in found["stages"]]
    whole = sum(us for _, us, _ in found["stages"])
    busy = ", ".join(f"{name} {share:.0%}" for name, share in found["busy"].items() if share >= 0.005)
    functions = [{"name": name, "us": us} for name, us in found["functions"][:15]]
    return [
        *table(
            "stage of (a) | µs an event | share", "{name} | {us} | {share}",
            [*rows, {"name": "**all**", "us": f"**{whole:.2f}**", "share": ""}],
        ),
        "",
        f"{found['events_per_second_under_the_sampler']:,.0f} events/s under the sampler. Threads busy: {busy}. "
        f"Garbage collection: {found['gc_share']:.1%} of the time, inside the stages.",
        "",
        *table("function | µs an event", "`{name}` | {us:.2f}", functions),
    ]  # fmt: skip


def latency(found: Found) -> list[str]:
    halves = {"half": " (half the top rate)"}
    return table(
        "rate | the sink answers after | p50 | p95 | goal for p95 | events",
        "{rate:,.0f}/s{half} | {sink_delay:ms} | {to_stored[p50]:ms} | **{to_stored[p95]:ms}** | {goal:ms} | "
        "{events:,}",
        [one | {"half": halves.get(one["load"], ""), "goal": found["goals"][one["load"]]} for one in found["measured"]],
    )


def scaling(found: Found) -> list[str]:
    first = found["measured"][0]["rate"]
    return [
        *table(
            f"workers | events/s | times one | machine busy ({found['cores']} cores, all processes)",
            "{workers} | {rate:,.0f} | {times:.2f} | {machine_busy:.0%}",
            [one | {"times": one["rate"] / first} for one in found["measured"]],
        ),
        "",
        f"{found['partitions']} partitions, medians of {found['rounds']} rounds.",
    ]


def restart(found: Found) -> list[str]:
    rows = [
        {"text": text, "seconds": found["seconds"][case], "all": ", ".join(f"{x:.1f}" for x in found["all"][case])}
        for case, text in found["cases"].items()
    ]
    return [
        *table("start to first score | median | each", "{text} | {seconds:.1f} s | {all}", rows),
        "",
        f"Goal without an owner before: {found['goal']:g} s. Stopping with SIGTERM took {found['stop_seconds']:.1f} s.",
    ]


def memory(found: Found) -> list[str]:
    return table(
        "turns | spread over | bytes a turn with trace | and thumb | goal",
        "{turns:,} | {hours:,.0f} h | {with_trace:.0f} | **{with_thumb:.0f}** | {goal}",
        [one | {"hours": one["span_seconds"] / 3600, "goal": found["goal_bytes"]} for one in found["redis"]],
    )


def live(found: Found) -> list[str]:
    """The families that take at least a byte a turn."""
    lives = {family.layout: family.life for family in FAMILIES}
    return [
        *table(
            "family | keys a turn | bytes a turn | kept for",
            "`{name}` | {keys:.2f} | **{size:.0f}** | {life}",
            [
                {"name": name, "keys": found["keys"][name], "size": size, "life": lives.get(name, "")}
                for name, size in found["bytes"].items()
                if size >= 1
            ],
        ),
        "",
        f"{found['turns']:,} turns with trace, thumb and the scores of the shipped judges, by `MEMORY USAGE`.",
    ]


def flat(found: Found) -> list[str]:
    return [
        *table(
            "events | judged | resident MB | Redis MB | Redis bytes a turn | series | /metrics kB",
            "{events:,} | {judged:,.0f} | {resident_mb:.0f} | {redis_mb:.1f} | {redis_bytes_per_turn:,} | {series:,} | "
            "{metrics_kb:.0f}",
            [one | {"redis_mb": one["redis_bytes"] / 1e6} for one in found["tenths"]],
        ),
        "",
        f"{found['turns']:,} turns; quality judges sample {found['rate']:.0%} of the traces, and "
        f"{found['voted_down']:.0%} of the turns are voted down; {found['seconds']:,} s in all.",
    ]


def registry(found: Found) -> list[str]:
    measured = {f"`{name}`": one for name, one in found["alone"].items()}
    measured["by id, while new versions come in one after the other"] = found["during_refresh"]
    measured["by id, beside a thread that only counts"] = found["beside_a_busy_thread"]
    return [
        *table(
            "lookup | median µs | p99 µs | p99.9 µs | longest µs",
            "{name} | **{median_us:.2f}** | {p99_us:.2f} | {p999_us:.1f} | {max_us:,.0f}",
            [one | {"name": name} for name, one in measured.items()],
        ),
        "",
        said(
            "Goals: median below {goals[median_us]:g} µs, p99 below {goals[p99_us]:g} µs. Medians of {rounds} rounds, "
            "of the longest the longest; {calls:,} calls of each kind a round, and {refreshes:.0f} refreshes. The "
            "clock's own two readings and the call from a loop, {clock_us:.2f} µs, are in each figure. Files opened or "
            "folders listed by 10,000 lookups: {files_opened:.0f}.",
            found,
        ),
        "",
        said(
            "**{files} rule files** validate in **{validate[seconds]:.2f} s**, of which {validate[cpu_seconds]:.2f} s "
            "are CPU; the first time in a process in {validate[first_seconds]:.2f} s (goal: "
            "{goals[validate_seconds]:g} s). The shipped registry is read, checked and built in {load_seconds:ms}, "
            "50 ms of it a pause to see that its files stand still.",
            found,
        ),
    ]


def judges(found: Found) -> list[str]:
    rows = []
    for one in found["measured"]:
        way = "" if one["layer"] == "direct" else ", through Opik's model layer (litellm)"
        ratio, call = one["cold_seconds"] / one["bound"], one["cold_cpu"] / (one["items"] * one["judges"])
        rows.append(one | {"way": way, "ratio": ratio, "cpu_ms": call * 1000, "goals": found["goals"]})
    return [
        *table(
            " | bound | took | times the bound | goal | CPU a call | loop busy at most | again, from Redis | goal",
            "{items} items × {judges} judges, {latency:ms} each{way} | {bound:.2f} s | {cold_seconds:.2f} s | "
            "**{ratio:.2f}** | {goals[ratio]:g} | {cpu_ms:.1f} ms | {cold_lag:ms} | **{warm_seconds:.2f} s** | "
            "{goals[warm_seconds]:g} s",
            rows,
        ),
        "",
        f"{found['at_once']} calls at once; medians of {found['rounds']} rounds.",
    ]


def candidate(found: Found) -> list[str]:
    one = found["measured"]
    bound, both = max(one["candidate"], one["judges"]), one["candidate"] + one["judges"]
    return [
        *table(
            " | the candidate's bound | the judges' | took | times the larger | one after the other",
            "{items} items, {seconds:g} s an answer, {asked_at_once} at once; {calls:g} calls of {latency:g} s | "
            "{candidate:.1f} s | {judges:.1f} s | {took:.1f} s | **{times:.2f}** | {both:.2f} at least",
            [found | one | {"times": one["took"] / bound, "both": both / bound}],
        ),
        "",
        f"{found['at_once']} calls at once; medians of {found['rounds']} rounds.",
    ]


def verdicts(found: Found) -> list[str]:
    at_once, before = found["at_once"], found["in_memory"]
    goals = {"inside": f"{found['goals']['decided_p95'] * 1000:,.0f} ms"}
    parts = {
        "record_to_verdict": "from the request handed to Kafka to the verdict in a plain consumer's hands",
        "inside": "of it, from the request's decoding to its published verdict",
        "deciding": "of that, deciding (`evidence.duration_seconds`)",
    }
    places = {"in_memory": "the worker's memory", "in_redis": "Redis alone"}
    gates = {f"{at_once['gates']} alike": "equal", f"a small one beside {at_once['gates'] - 1} larger": "small"}
    return [
        *table(
            "scores in |  | p50 | p95 | longest | goal for p95",
            "{where} | {text} | {p50:ms} | **{p95:ms}** | {max:ms} | {goal}",
            [
                found[place][part] | {"where": where, "text": text, "goal": goals.get(part, "")}
                for place, where in places.items()
                for part, text in parts.items()
            ],
        ),
        "",
        f"{before['requests']} requests each, one after another, about {found['sample']} traces × {found['judges']} "
        f"judges, all scored before. The first, which asked the model, took {before['first']:.1f} s.",
        "",
        *table(
            "gates at once | first verdict | last verdict | slowest / fastest | times its fair share",
            "{text} | {first:.1f} s | {last:.1f} s | **{spread:.2f}** | {shares}",
            [
                {
                    "text": text, "first": min(one["took"]), "last": max(one["took"]), "spread": one["spread"],
                    "shares": ", ".join(f"{size} traces: {share:.2f}" for size, share in one["share"].items()),
                }
                for text, one in ((text, at_once[name]) for text, name in gates.items())
            ],
        ),
        "",
        f"{at_once['latency'] * 1000:,.0f} ms a call; a fair share is what the model's places would give it, were they "
        "shared evenly and nothing else cost time.",
    ]  # fmt: skip


def start(found: Found) -> list[str]:
    goals = {name: f"{goal:g} s" for name, goal in found["goals"].items()}
    rows = [one | {"name": name, "goal": goals.get(name, "")} for name, one in found["commands"].items()]
    shown = table(" | time | CPU | goal", "`{name}` | **{seconds:.2f} s** | {cpu_seconds:.2f} s | {goal}", rows)
    return [*shown, "", f"Medians of {found['rounds']} rounds."]


def scores(found: Found) -> list[str]:
    goals, taken = found["goals"], found["arrays"]
    named = {
        "inversion": "inversion: 12 judges × 100,000 pairs",
        "drift": "drift: 50 judges × 100,000 scores",
        "suite": "suite: 2,000 cases, 20 slices, 10,000 resamples",
        "spec": "spec: 10,000 stored traces through the layers without a model",
    }  # results that were kept from before a row was measured have none for it
    rows = [(what, f"**{taken[name]:.2f} s**", "", goals[name]) for name, what in named.items() if name in taken]
    for name, seconds in taken.items():
        if name.startswith("alpha"):
            _, level, values = name.split(", ")
            many = "5 values" if values == "coarse" else "about 10,000 values"
            what = f"alpha with its interval, {level}: 10,000 items × 5, {many}"
            rows.append((what, f"**{seconds:.2f} s**", "", goals["alpha"]))
    shown = [{"what": what, "time": time, "mib": mib, "goal": f"{goal:g} s"} for what, time, mib, goal in rows]
    limit = f"{goals['lines']:g} s, {goals['lines_mib'] / 1024:g} GiB"
    shown += [
        {
            "what": f"`check {name}`, {found['lines']:,} lines", "goal": limit, "mib": f"{one['mib']:,.0f} MiB",
            "time": f"**{one['seconds']:.1f} s** ({one['cpu_seconds']:.1f} s CPU)",
        }
        for name, one in found["files"].items()
    ]  # fmt: skip
    lines = table(" | time | memory | goal", "{what} | {time} | {mib} | {goal}", shown)
    return [*lines, "", f"Medians of {found['rounds']} rounds; of memory the most."]


def suites(found: Found) -> list[str]:
    small, *_, middle, large = found["measured"].values()
    return [
        *table(
            " | calls × latency ÷ at once | cold | CPU | again, all kept | memory",
            "{cases:,} cases | {bound:.1f} s | **{cold_seconds:.1f} s** ({ratio:.2f} ×) | {cold_cpu:.1f} s | "
            "{warm_seconds:.2f} s | {mib:,.0f} MiB",
            [
                one | {"cases": int(cases), "ratio": one["cold_seconds"] / one["bound"]}
                for cases, one in found["measured"].items()
            ],
        ),
        "",
        said(
            "{samples} samples, {judges} judges of {ms:g} ms, {at_once} calls at once; whole processes, medians. "
            "Goals: cold within {goals[ratio]:g} ×; 50 cases again under {goals[warm_seconds]:g} s (**{warm:.2f} s**); "
            "memory of 2,000 cases at most {goals[memory_ratio]:g} × that of 200 (**{ratio:.2f} ×**).",
            found
            | {"ms": found["latency"] * 1000, "warm": small["warm_seconds"], "ratio": large["mib"] / middle["mib"]},
        ),
    ]


TABLES: dict[str, tuple[str, Callable[[Found], list[str]]]] = {
    "throughput": ("Events a second, side by side", throughput),
    "profile": ("Where our worker's time goes", profile),
    "latency": ("From event to stored score", latency),
    "scaling": ("More workers", scaling),
    "restart": ("Restarts", restart),
    "start": ("Start-up", start),
    "memory": ("Memory", memory),
    "live": ("Redis with live judging", live),
    "flat": ("Flat with live judging on", flat),
    "registry": ("The registry", registry),
    "judges": ("Judges", judges),
    "candidate": ("Candidate and judges side by side", candidate),
    "verdicts": ("Verdicts", verdicts),
    "scores": ("Checks of score files", scores),
    "suites": ("Suites", suites),
}
"""Of each part the title, and what shows its results."""
