"""A suite: the cases that a candidate answers, and what is looked at in its answers (the offline pipeline)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, StrictInt, StrictStr, model_validator

from schemas.files import FileModel, Number, Path, Text
from schemas.manifests import Endpoint

FileName = Annotated[StrictStr, Field(min_length=1, max_length=1_000, pattern=r"^\S(.*\S)?$")]
Address = Annotated[StrictStr, Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$", max_length=300)]
Names = Annotated[tuple[Text, ...], Field(max_length=100)]


class Part(FileModel):
    """One part of the candidate, which `suite blame` can revert alone: files, whose content counts, or a value."""

    files: Annotated[tuple[FileName, ...], Field(min_length=1, max_length=1_000)] | None = None
    """Files, or patterns such as `tools/*.json`, in the suite's folder."""
    value: Text | None = None
    """A model's name, a revision. The candidate gets it with each case, in `configuration`."""

    @model_validator(mode="after")
    def one_of_both(self) -> Self:
        if (self.files is None) == (self.value is None):
            raise ValueError("either `files` or `value` is required, and not both")
        return self


class Candidate(FileModel):
    """Who answers: an address, a command or a Python function. Exactly one of `url`, `command` and `entry`."""

    url: Endpoint | None = None
    """POST {input, metadata, configuration} -> {output}."""
    command: Annotated[tuple[StrictStr, ...], Field(min_length=1, max_length=100)] | None = None
    """A program and its arguments; the case as JSON on its input, the answer on its output."""
    entry: Annotated[StrictStr, Field(pattern=r"^[\w.]+:[\w.]+$", max_length=500)] | None = None
    """`module:function` in `folder`; the case is its one argument."""
    folder: FileName = "."
    """Where the command or the function is, from the suite's folder on."""
    python: FileName = "python3"
    """The interpreter of `entry`; a path is from the suite's folder on."""
    environment: Names = ()
    """Variables that it gets beside PATH, HOME and the like; none of RAMPGATE_."""
    at_once: Annotated[StrictInt, Field(ge=1, le=64)] = 4
    """Cases that it answers at once."""
    seconds: Annotated[Number, Field(gt=0, le=3_600)] = 60.0
    """One answer may take so long."""
    memory_mb: Annotated[StrictInt, Field(ge=0, le=1_000_000)] = 4_096
    """Address space of one process of `entry`; 0: no limit."""
    otlp: (
        Annotated[StrictStr, Field(pattern=r"^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):\d{1,5}$", max_length=300)] | None
    ) = None
    """`host:port` on which the run takes its OpenTelemetry spans (OTLP over HTTP); port 0: any free one."""
    otlp_seconds: Annotated[Number, Field(gt=0, le=60)] = 6.0
    """An answer's spans may be so late."""
    parts: Annotated[dict[Text, Part], Field(min_length=1, max_length=50)]
    """What it is made of: prompt, model, retriever revision, tool schemas. Each is hashed; a change asks it again."""

    @model_validator(mode="after")
    def one_way(self) -> Self:
        if sum(way is not None for way in (self.url, self.command, self.entry)) != 1:
            raise ValueError("exactly one of `url`, `command` and `entry` is required")
        if self.otlp is not None and int(self.otlp.rpartition(":")[2]) > 65_535:
            raise ValueError("`otlp`: a port is 65535 at most")
        if self.url is not None and self.otlp is not None and self.otlp.endswith(":0"):
            raise ValueError("`otlp`: name a port: one that answers at an address isn't told any")
        return self


class Check(FileModel):
    """Looks at an output without a model: 1 where it holds, 0 where not. Exactly one of `regex`, `json_schema` and
    `equals`."""

    regex: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    """An RE2 pattern that is found in the text."""
    absent: StrictBool = False
    """With `regex`: holds where the pattern is not found."""
    json_schema: FileName | None = None
    """A file with a JSON Schema (2020-12) that the text, read as JSON, fits."""
    equals: Path | None = None
    """A field of the case, such as `expected_output`, that the text is, but for space around it."""
    field: Path = "output"
    """The field of the answer that is looked at."""

    @model_validator(mode="after")
    def one_way(self) -> Self:
        if sum(way is not None for way in (self.regex, self.json_schema, self.equals)) != 1:
            raise ValueError("exactly one of `regex`, `json_schema` and `equals` is required")
        if self.absent and self.regex is None:
            raise ValueError("`absent` goes with `regex`")
        return self


class Cases(FileModel):
    """Where cases come from: a file, or a dataset in Opik. Exactly one of both."""

    file: FileName | None = None
    """JSON Lines: `{id, input, metadata?, expected_output?, tags: [slice], cluster?}` a line."""
    dataset: Text | None = None
    """A dataset's name in Opik; an item's `metadata` has its `id`, its `tags`, which are its slices, and `cluster`."""
    project: Text | None = None
    """The Opik project that has the dataset; default: the vertical's."""
    version: Annotated[StrictInt, Field(ge=1)] | None = None
    """The dataset's version; default: the newest."""

    @model_validator(mode="after")
    def one_of_both(self) -> Self:
        if (self.file is None) == (self.dataset is None):
            raise ValueError("either `file` or `dataset` is required, and not both")
        if self.dataset is None and (self.version is not None or self.project is not None):
            raise ValueError("`version` and `project` go with `dataset`")
        return self


class SuiteFile(FileModel):
    """A suite. Paths are from its own folder on."""

    suite: Annotated[Text, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=63)]
    """Its name, under which runs are stored."""
    agent: Text
    """The agent's id, as ramp-step requests name it."""
    vertical: Text | None = None
    """The vertical whose limits hold."""
    candidate: Candidate
    """Who answers, and what it is made of."""
    cases: Cases
    """Where the cases come from."""
    samples: Annotated[StrictInt, Field(ge=1, le=50)] = 3
    """Answers to each case."""
    smoke: Annotated[StrictInt, Field(ge=1, le=10_000)] = 50
    """Cases of the smoke set, which each commit runs."""
    checks: Annotated[dict[Text, Check], Field(max_length=100)] = Field(default_factory=dict)
    """Score name -> what is looked at without a model."""
    judges: Names = ()
    """Judges of the registry, each asked about every answer that it applies to."""
    pairwise: Names = ()
    """Judges, of `judges` or else of the registry, that are also asked which answer to a case is better, the
    candidate's or the baseline's, in both orders. No gate looks at it."""
    score: Text
    """The one score that gates look at: a check's name or a judge's id."""
    safety: Names = ()
    """Slices in which no case may fail that never failed before."""
    let_go: Names = ()
    """Cases of safety that may be missing, or ask something else than the baseline's."""
    safe_at: Number | None = None
    """A case of a safety slice fails below this score. Default: the judge's threshold; of a check, 1."""
    slices: Names = ()
    """The slices that are compared beside those of safety; default: all tags of the cases."""

    @model_validator(mode="after")
    def score_is_given(self) -> Self:
        both = sorted(set(self.checks) & set(self.judges))
        if both:
            raise ValueError(f"`{both[0]}` names a check and a judge")
        check = next((name for name in self.pairwise if name in self.checks), None)
        if check is not None:
            raise ValueError(f"`pairwise` has {check}, which is a check: it prefers nothing")
        if self.score not in self.checks and self.score not in self.judges:
            raise ValueError(f"`score` is {self.score}, which is none of the checks and judges")
        return self


Size = Literal["smoke", "full"]
Case = dict[str, Any]
