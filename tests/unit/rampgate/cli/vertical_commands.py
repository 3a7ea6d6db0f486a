"""Commands that take a `--vertical`, with what else they need."""

from __future__ import annotations

COMMANDS = {
    "check drift": ("check", "drift", "scores.jsonl", "scores.jsonl"),
    "check cadence": ("check", "cadence"),
    "check inversion": ("check", "inversion"),
    "calibrate production": ("calibrate", "production", "scores.jsonl"),
    "calibrate jade": ("calibrate", "jade"),
    "export": ("export", "--where", "feedback_scores.user_signal_thumbs < 0"),
    "rules list": ("rules", "list"),
    "rules sync": ("rules", "sync", "--dry-run"),
    "manifest show": ("manifest", "show"),
}
