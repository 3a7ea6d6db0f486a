"""Settings: read once, validated whole, frozen, passed down (contracts §7).

Each field is an environment variable `RAMPGATE_<NAME>`, a key of the same name in `rampgate.toml` and, where a person
would type it, a flag. Precedence: flag, environment, file, default. Unknown keys are errors. No error text quotes a
value that may hold a password.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from evalcore.remediation.objects import Kinds, is_name
from rampgate.console import Failure
from schemas.settings import SENTINEL_SCHEMES, in_the_clear, is_loopback, read_secret, read_sentinel_url

_URL_QUERY = re.compile(r"(?<=://)([^\s?#\"']*\?)[^\s\"']+")
URL_PASSWORD = re.compile(r"(?<=://)(?:([^/@\s:]*):)?[^\s]*@")
_CALLER = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
DAY = 86_400.0
SECRETS = (
    "opik_api_key", "token", "model_key", "candidate_key", "pagerduty_key", "slack_webhook", "grafana_token",
    "redis_password", "seal_key", "seal_key_previous", "github_token",
)  # fmt: skip
_CARRIED = {
    "redis": "redis_password", "opik": "opik_api_key", "model_url": "model_key", "pagerduty_url": "pagerduty_key",
    "grafana_url": "grafana_token", "github_url": "github_token",
}  # fmt: skip
"""A URL, and the secret that is sent to it."""


class SettingsError(Failure, ValueError):
    """A setting that can't be used; the message names where it came from, the field and the remedy."""


def revealed(secret: SecretStr | None) -> str | None:
    """The secret in the clear, for a client that sends it; never shown or logged."""
    return secret.get_secret_value() if secret is not None else None


class KafkaSecurity(BaseModel):
    """`RAMPGATE_KAFKA_SECURITY` as JSON. Secrets are named by file, never given inline."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    user: str | None = None
    secret_file: Path | None = None
    ca_file: Path | None = None
    allow_plaintext: bool = False

    @model_validator(mode="after")
    def _sasl_is_whole(self) -> Self:
        if self.protocol.startswith("SASL") and None in (self.mechanism, self.user, self.secret_file):
            raise ValueError(
                f"{self.protocol} needs mechanism, user and secret_file (the file that holds the password)"
            )
        return self

    def secret(self) -> str:
        """The password. Raises SettingsError where its file can't be read or is empty."""
        try:
            return read_secret(self.secret_file or Path())
        except ValueError as error:
            raise SettingsError(f"kafka_security.secret_file: {error}") from error


def usable_url(value: str, *schemes: str) -> str:
    """The URL itself. Raises ValueError with a text of ours: the clients' quote parts of a password with a / in it."""
    try:
        parts = urlsplit(value)
        usable = parts.scheme in schemes and bool(parts.hostname or parts.path) and parts.port != 0
    except ValueError:
        parts, usable = urlsplit(""), False
    if not usable:
        named = " or ".join(f"{scheme}://" for scheme in schemes)
        raise ValueError(
            f"must be a URL that begins with {named}; special signs in a user's name or password have to be "
            "percent-encoded"
        )
    if parts.query and "https" in schemes:
        raise ValueError("has a query (?…), which logs would show: a key is a setting of its own, best by its _file")
    return value


def hide_password(text: str) -> str:
    """The text with the credentials of every URL in it hidden, except a user's name that comes with a password. A URL's
    query is hidden too, since some services take their key there."""
    text = URL_PASSWORD.sub(lambda found: f"{found[1]}:***@" if found[1] is not None else "***@", text)
    return _URL_QUERY.sub(r"\1***", text)


class Settings(BaseModel):
    """Everything an operator can change. Durations in seconds, sizes in bytes unless the name says otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kafka: str = "127.0.0.1:9092"
    kafka_security: KafkaSecurity = KafkaSecurity()
    allow_plaintext: bool = Field(
        False, description="Send keys and passwords unencrypted to other machines; Kafka's is in kafka_security"
    )
    group: str = "rampgate"
    topic_prefix: str = "rampgate."
    audit_topic: str = "ps5.query_audit"
    redis: str = "redis://127.0.0.1:6379/0"
    redis_password: SecretStr | None = Field(None, description="Takes the place of one in the URL")
    redis_password_file: Path | None = None
    redis_prefix: str = "rg:"
    opik: str = "http://127.0.0.1:5173/api"
    opik_workspace: str = "default"
    opik_api_key: SecretStr | None = None
    opik_api_key_file: Path | None = None
    configs: Path = Path("configs")
    http: str = "127.0.0.1:8350"
    token: SecretStr | None = None
    token_file: Path | None = None
    tokens_file: Path | None = Field(
        None, description="A caller's name and its own token on each line: the audit names callers by their tokens"
    )
    http_hosts: str = Field(
        "", description="Names by which HTTP is asked, comma-separated; loopback and the address itself always count"
    )
    http_probes: str | None = Field(None, description="address:port of /livez and /readyz alone, besides `http`")
    model_url: str | None = None
    model_key: SecretStr | None = None
    model_key_file: Path | None = None
    model_calls_at_once: int = Field(20, ge=1, description="For all gates of a worker together")
    model_calls_per_minute: float | None = Field(None, gt=0)
    model_call_seconds: float = Field(60.0, gt=0, description="One call may take so long; it is tried again")
    model_patience_seconds: float = Field(
        30.0, ge=0, description="How long a gate waits for a model that answers none of its calls"
    )
    judged_tokens: int = Field(
        32_000, ge=500, description="Of a turn's texts, what a judge is shown; of longer ones head and tail"
    )
    judge_answer_seconds: float = Field(
        2 * DAY, gt=0, description="How long Redis keeps judges' answers; a gate that finds none asks the model"
    )
    canaries_days: float = Field(
        10.0, gt=0, description="A judge whose last pass of its canaries is older is told of (rampgate check canaries)"
    )
    candidate_key: SecretStr | None = Field(None, description="Bearer token of the candidate that gates run")
    candidate_key_file: Path | None = None
    candidate_origins: str = Field(
        "", description="Where a manifest may have candidates run, as https://host:port, comma-separated; and loopback"
    )
    gates_at_once: int = Field(
        32,
        ge=1,
        description="Gates of a worker that judge at once, each with its sample in memory; others wait in line",
    )
    gate_calls: int | None = Field(None, ge=1, description="Model calls that one gate may make; None: no limit")
    gate_tokens: int | None = Field(None, ge=1, description="Tokens that one gate may spend; None: no limit")
    live_judging: bool = Field(True, description="Judge live traces, where there is a model and writing is on")
    live_settle_seconds: float = Field(
        30.0, ge=0, le=3_600, description="A trace or a thumb is judged so long after it came"
    )
    regression_seconds: float = Field(30.0, gt=0, description="How often live scores are compared with their floors")
    regression_window_seconds: float = Field(DAY, gt=0)
    regression_minimum: int = Field(30, ge=1, description="Live scores of a judge below which nothing follows")
    regression_unscored_share: float = Field(
        0.02, ge=0, le=1, description="Share of a safety judge's live traces without a score above which it pages"
    )
    ramp_down_users: int = Field(
        3,
        ge=0,
        description="Distinct users among the traces below a floor that a ramp-down takes; one without a user counts "
        "as a user",
    )
    ramp_down_sessions: int = Field(3, ge=0, description="Distinct sessions, counted alike")
    ramp_down: bool = Field(True, description="Command a ramp-down; off: the page asks for one by hand")
    regressions_log: Path = Path("docs/post-deploy-regressions.md")
    pagerduty_url: str = "https://events.pagerduty.com/v2/enqueue"
    pagerduty_key: SecretStr | None = None
    pagerduty_key_file: Path | None = None
    slack_webhook: SecretStr | None = None
    slack_webhook_file: Path | None = None
    grafana_url: str | None = None
    grafana_token: SecretStr | None = None
    grafana_token_file: Path | None = None
    github_url: str = Field("https://api.github.com/graphql", description="Says who approved an override of a gate")
    github_token: SecretStr | None = None
    github_token_file: Path | None = None
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "json"

    write: bool = Field(False, description="The writer's flag `ai_assistant_eval_correlation_pipeline_enabled`")
    mirror_legacy_names: bool = False
    lookback_seconds: float = Field(7 * DAY, gt=0)
    missing_trace_seconds: float = Field(900.0, ge=0)
    trace_lookup_seconds: float = Field(0.5, ge=0, description="Wait before a parked signal's trace is sought in Opik")
    judge_settle_seconds: float = Field(300.0, ge=0)
    reroll_window_seconds: float = Field(300.0, gt=0)
    future_tolerance_seconds: float = Field(DAY, ge=0)

    batch_records: int = Field(2000, ge=1, le=10_000)
    batches_in_flight: int = Field(16, ge=1, le=64)
    max_record_bytes: int = Field(
        1_000_000,
        ge=1_000,
        description="A larger record becomes a dead letter; so does a batch that would inflate to over 64 MiB, or to "
        "over 16 times this where that is more",
    )
    bad_records_in_a_row: int = Field(1_000, ge=1, description="So many undecodable records in a row pause a partition")
    new_names_per_hour: int = Field(
        1_000,
        ge=0,
        description="Unregistered verticals, and agent versions, that a worker takes as new in an hour; more count as "
        "unregistered, or are not pooled",
    )
    opik_writes_in_flight: int = Field(8, ge=1)
    opik_timeout_seconds: float = Field(10.0, gt=0)
    opik_retry_seconds: float = Field(60.0, ge=0, description="Total time one write may be retried")
    opik_doubt_seconds: float = Field(
        480.0,
        gt=0,
        description="After so long no write without an answer is applied any more, and scores that it may have changed "
        "are compared with Opik; at least 2.5 times `opik_retry_seconds`",
    )
    opik_lookups_per_minute: float = Field(25.0, gt=0, description="Search and list calls; Opik's own limit is 30")
    session_timeout_seconds: float = Field(6.0, ge=1)
    commit_interval_seconds: float = Field(1.0, gt=0)
    stalled_after_seconds: float = Field(
        300.0,
        gt=0,
        description="/livez fails once records have waited this long, none was settled and every part answers",
    )
    group_instance_id: str | None = None
    seal_key: SecretStr | None = Field(
        None,
        min_length=16,
        description="Seals our headers on dead letters, a suite's store, the audit of exports, traces of our own "
        "calls, and traces that were completed with their workflows; without it no such trace counts as ours, and "
        "Redis keeps a key for headers",
    )
    seal_key_file: Path | None = None
    seal_key_previous: SecretStr | None = Field(
        None,
        min_length=16,
        description="The key before: traces that it completed still count; name it for the lookback window",
    )
    seal_key_previous_file: Path | None = None
    enrichment_wait_seconds: float = Field(
        1_200.0, ge=0, description="After so long a trace is completed though its workflow has not ended"
    )
    cluster_url: str | None = Field(
        None,
        description="The cluster's API; unset: that of the pod's service account, else of the kubeconfig. `file:PATH`: "
        "a stand-in with the objects of a YAML file, for a laptop",
    )
    cluster_token_file: Path | None = Field(None, description="With `cluster_url`: read again when the API refuses it")
    cluster_ca_file: Path | None = Field(None, description="With `cluster_url`: who signs the API's certificate")
    cluster_timeout_seconds: float = Field(10.0, gt=0, le=300, description="One answer of the cluster may take so long")
    cluster_kinds: Kinds = Field(
        Kinds(), description="Group, version and kinds of the operator's objects; Proposal is called AgenticRun since"
    )
    registry_ttl_seconds: float = Field(
        300.0, ge=0, description="Read the registry's files again after this time; 0: only on SIGHUP or POST /refresh"
    )

    suite_store: str | None = Field(
        None,
        description="What suites keep answers and scores in: a file or s3://bucket/prefix; unset: a file beside the "
        "suite",
    )
    suite_keep_days: int = Field(
        90,
        ge=1,
        le=36_500,
        description="Days that a suite's store in a file keeps what no run uses; main's last passing runs stay "
        "whatever their age",
    )

    thumbs_table: str = "thumbs"
    dynamodb_endpoint: str | None = None
    dynamodb_region: str = "us-east-1"
    attribute_message_id: str = "MessageId"
    attribute_user_id: str = "UserId"
    attribute_response_id: str = "ResponseId"
    attribute_thumbs: str = "Thumbs"
    attribute_created_at: str = "CreatedAt"
    attribute_vertical: str = "Vertical"

    @field_validator("opik")
    @classmethod
    def _strip_slash(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; leave it unset for an Opik on this machine, http://127.0.0.1:5173/api")
        return value.rstrip("/")

    @field_validator("http", "http_probes")
    @classmethod
    def _address_and_port(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.removeprefix("http://").removesuffix("/")
        host, _, port = value.rpartition(":")
        if not host or "/" in host or not port.isdigit() or int(port) > 65_535:
            raise ValueError("must be address:port, for example 127.0.0.1:8350 (port 0 takes a free one)")
        return value

    @model_validator(mode="before")
    @classmethod
    def _secrets_from_files(cls, data: Any) -> Any:
        if isinstance(data, dict):
            for name in SECRETS:
                file = data.get(f"{name}_file")
                if isinstance(file, str | Path) and file and not data.get(name):
                    try:
                        data = data | {name: read_secret(Path(file))}
                    except ValueError as error:
                        raise ValueError(f"{name}_file: {error}") from error
        return data

    @field_validator(*SECRETS)
    @classmethod
    def _no_empty_secret(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().strip():
            raise ValueError("is empty; leave it unset where there is none")
        return value

    @field_validator("redis")
    @classmethod
    def _redis_url(cls, value: str) -> str:
        if read_sentinel_url(value) is not None:
            return value
        return usable_url(value, "redis", "rediss", "unix", *SENTINEL_SCHEMES)

    @field_validator("model_url")
    @classmethod
    def _model_url(cls, value: str | None) -> str | None:
        """`litellm:` goes through Opik's model layer, to the address behind it where there is one."""
        layer, address = ("litellm:", value[8:]) if value and value.startswith("litellm:") else ("", value)
        return layer + usable_url(address, "http", "https") if address else value

    @field_validator("cluster_kinds", mode="before")
    @classmethod
    def _known_kinds(cls, value: Any) -> Any:
        fields = set(Kinds.__dataclass_fields__)
        if isinstance(value, dict) and (strange := [name for name in value if name not in fields]):
            raise ValueError(f"{strange[0]}: must be one of {', '.join(sorted(fields))}")
        for name, given in value.items() if isinstance(value, dict) else ():
            # They become parts of URLs.
            fits = is_name(given) if name == "group" else re.fullmatch("[A-Za-z0-9]+", str(given)) is not None
            if isinstance(given, str) and not fits:
                must = "a name of Kubernetes" if name == "group" else "letters and digits"
                raise ValueError(f"{name}: must be {must}, got {given[:80]!r}")
        return value

    @field_validator("opik", "dynamodb_endpoint", "pagerduty_url", "grafana_url", "github_url", "cluster_url")
    @classmethod
    def _http_url(cls, value: str | None, info: ValidationInfo) -> str | None:
        if info.field_name == "cluster_url" and value and value.startswith("file:"):
            return value
        return value and usable_url(value, "http", "https")

    @model_validator(mode="after")
    def _no_plaintext_off_loopback(self) -> Self:
        hosts = {broker.rpartition(":")[0] for broker in self.brokers}
        local = bool(hosts) and hosts <= {"127.0.0.1", "localhost", "[::1]", "::1"}
        security = self.kafka_security
        if security.protocol in ("PLAINTEXT", "SASL_PLAINTEXT") and not local and not security.allow_plaintext:
            raise ValueError(
                f"kafka: {self.kafka} is not on this machine and the connection would be in the clear; "
                'set kafka_security to {"protocol": "SASL_SSL", …} or, knowingly, {"allow_plaintext": true}'
            )
        return self

    @model_validator(mode="after")
    def _doubt_covers_all_tries(self) -> Self:
        if self.opik_doubt_seconds < 2.5 * self.opik_retry_seconds:
            raise ValueError(
                f"opik_doubt_seconds: {self.opik_doubt_seconds:g} is less than 2.5 times opik_retry_seconds "
                f"({self.opik_retry_seconds:g}): a try could begin, or be applied late, after it"
            )
        return self

    @model_validator(mode="after")
    def _no_secret_in_the_clear(self) -> Self:
        if self.allow_plaintext:
            return self
        for name, secret in _CARRIED.items():
            url: str | None = getattr(self, name)
            carries = url is not None and (getattr(self, secret) is not None or URL_PASSWORD.search(url) is not None)
            if carries and in_the_clear(str(url).removeprefix("litellm:")):
                raise ValueError(
                    f"{name}: a key or password would be sent in the clear to another machine; use https:// or "
                    "rediss://, or, knowingly, set allow_plaintext"
                )
        if self.cluster_url is not None and self.cluster_token_file is not None and in_the_clear(self.cluster_url):
            raise ValueError("cluster_url: the token would be sent in the clear to another machine; use https://")
        if self.slack_webhook is not None and in_the_clear(self.slack_webhook.get_secret_value()):
            raise ValueError("slack_webhook: the address is a secret itself and would be sent in the clear; use https")
        return self

    @property
    def redis_url(self) -> str:
        """The URL of Redis, with its password."""
        if self.redis_password is None:
            return self.redis
        scheme, _, rest = self.redis.partition("://")
        user, _, place = rest.rpartition("@")
        password = quote(self.redis_password.get_secret_value(), safe="")
        return f"{scheme}://{user.partition(':')[0]}:{password}@{place}"

    def candidate_refusal(self, url: str) -> str | None:
        """Why no candidate is asked at this address; None for one that may be asked. Manifests have many authors, and a
        candidate gets users' inputs and a key."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}".lower()
        allowed = {one.strip().rstrip("/").lower() for one in self.candidate_origins.split(",") if one.strip()}
        if origin not in allowed and not is_loopback(parts.hostname or ""):
            return f"{origin} is not among RAMPGATE_CANDIDATE_ORIGINS"
        if self.candidate_key is not None and in_the_clear(url) and not self.allow_plaintext:
            return f"the candidate's key would be sent in the clear to {origin}: use https, or set allow_plaintext"
        return None

    @property
    def brokers(self) -> list[str]:
        return [broker.strip() for broker in self.kafka.split(",") if broker.strip()]

    @property
    def hosts(self) -> frozenset[str]:
        """The names of `http_hosts`, in small letters, without ports."""
        return frozenset(name.strip().lower() for name in self.http_hosts.split(",") if name.strip())

    def callers(self) -> dict[str, str]:
        """The names of `tokens_file`'s callers, by their tokens. Raises SettingsError, without a word of the file."""
        if self.tokens_file is None:
            return {}
        try:
            lines = [line.split() for line in read_secret(self.tokens_file).splitlines() if line.strip()]
        except ValueError as error:
            raise SettingsError(f"tokens_file: {error}") from error
        for number, words in enumerate(lines, 1):
            if len(words) != 2 or not _CALLER.fullmatch(words[0]):
                raise SettingsError(
                    f"tokens_file: {self.tokens_file}: caller {number}: a line is a name (letters, digits, . _ -) and "
                    "a token, with a space between"
                )
        callers = {token: name for name, token in lines}
        if len(callers) != len(lines):
            raise SettingsError(f"tokens_file: {self.tokens_file}: two callers have the same token")
        return callers
