"""Words that commands take as options, apart from the models that use them: `--help` loads no pydantic for them."""

from __future__ import annotations

from enum import StrEnum


class Milestone(StrEnum):
    """Where a gate fires (PC5 FR-2)."""

    PRE_MERGE = "pre_merge"
    PRE_RAMP = "pre_ramp"
    PRE_FULL = "pre_full"


class BaselineSource(StrEnum):
    """Where a threshold comes from: a JADE round, the distribution of production scores, or a provisional seed."""

    JADE_CALIBRATION = "jade_calibration"
    PRODUCTION_DISTRIBUTION = "production_distribution"
    PROVISIONAL_SEED = "provisional_seed"


class Step(StrEnum):
    """What is known of a part of an item, such as a step of a workflow: it ran, it broke off for a fault that is not
    the agent's, there was none, or it could not be read."""

    RAN = "ran"
    BROKE = "broke"
    ABSENT = "absent"
    UNREAD = "unread"


class Level(StrEnum):
    """What may be said of two ratings that differ."""

    NOMINAL = "nominal"
    ORDINAL = "ordinal"
    INTERVAL = "interval"
    RATIO = "ratio"


class LimitKind(StrEnum):
    """What is derived again: a judge's threshold, and floor with it; a floor that has a source of its own; the limit of
    its drift; a category's least agreement."""

    THRESHOLD = "threshold"
    FLOOR = "floor"
    DRIFT = "drift"
    AGREEMENT = "agreement"
