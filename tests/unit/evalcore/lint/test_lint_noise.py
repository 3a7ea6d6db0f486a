"""What was measured of judges' noise is of judges that exist, at their present version."""

from __future__ import annotations

from tests.unit.evalcore.lint.lint_cases import Case, check_cases
from tests.unit.evalcore.registry.registry_disk import built

FILE = "judge-noise.yaml"
HONESTY = built().judge("honesty").version


def noise(judge: str = "honesty", version: str = HONESTY, day: str = "2026-11-20", ends: str = "[0.0, 0.1]") -> str:
    return (
        f"{{judge: {judge}, judge_version: {version}, measured_on: {day}, items: 40, asks: 5, flip_rate: 0.01, "
        f"flip_rate_ci95: {ends}, deviation: 0.1, deviation_ci95: [0.05, 0.2], false_alarm_rate: 0.005}}"
    )


def measured(*entries: str) -> dict[str, str | None]:
    return {FILE: f"measured: [{', '.join(entries)}]"}


CASES = [
    Case(
        "noise-is-of-a-judges-version",
        measured(noise(), noise(version="0123456789abcdef")),
        f"{FILE}: measured[1].judge_version",
        measured(noise(version="0123456789abcdef"), noise()),
        (HONESTY, "rampgate check noise"),
    ),
    Case("noise-is-of-a-judges-version", measured(noise("honestly")), f"{FILE}: measured[0].judge", says=("honesty",)),
    Case(
        "noise-was-measured",
        measured(noise(day="2026-11-24")),
        f"{FILE}: measured[0].measured_on",
        measured(noise(day="2026-11-22")),
    ),
    Case("noise-was-measured", measured(noise(ends="[0.2, 0.1]")), f"{FILE}: measured[0].flip_rate_ci95"),
]


def test_noise_was_measured_of_what_judges_now() -> None:
    check_cases(CASES)
