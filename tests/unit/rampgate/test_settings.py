"""Settings: where each comes from, which wins, and what is refused (contracts §7)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pydantic import SecretStr

from rampgate.settings import Settings, SettingsError
from rampgate.settings_sources import load_settings, shown_settings
from schemas.settings import in_the_clear

SASL = {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "user": "u"}
FIXED = (
    "KAFKA KAFKA_SECURITY GROUP TOPIC_PREFIX REDIS REDIS_PREFIX OPIK OPIK_WORKSPACE OPIK_API_KEY OPIK_API_KEY_FILE "
    "CONFIGS HTTP TOKEN TOKEN_FILE MODEL_URL MODEL_KEY MODEL_KEY_FILE LOOKBACK_SECONDS MISSING_TRACE_SECONDS WRITE"
)


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("RAMPGATE_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def refusal(flags: dict[str, Any] | None = None, file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(flags, file)
    return str(caught.value)


def test_every_name_that_the_contract_fixes_exists() -> None:
    assert {name.lower() for name in FIXED.split()} <= set(Settings.model_fields)


def test_nothing_is_written_and_nobody_from_outside_is_let_in_unless_told() -> None:
    settings = load_settings()
    assert settings.write is False
    assert settings.http.startswith("127.0.0.1:")
    assert settings.kafka.startswith("127.0.0.1:")


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("rampgate.toml").write_text('group = "file"\nredis_prefix = "file:"\ntopic_prefix = "file."\n')
    assert load_settings().group == "file"
    monkeypatch.setenv("RAMPGATE_GROUP", "environment")
    monkeypatch.setenv("RAMPGATE_REDIS_PREFIX", "environment:")
    found = load_settings({"group": "flag", "topic_prefix": None})
    assert (found.group, found.redis_prefix, found.topic_prefix) == ("flag", "environment:", "file.")


@pytest.mark.parametrize("secret", ["opik_api_key", "token", "model_key", "candidate_key"])
def test_a_secret_and_its_file_are_one_setting_in_precedence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secret: str
) -> None:
    """A key left over in rampgate.toml must not win over the secret file that the environment names."""
    (tmp_path / "new").write_text("  new\n")
    (tmp_path / "old").write_text("old")
    Path("rampgate.toml").write_text(f'{secret} = "old"\n')
    monkeypatch.setenv(f"RAMPGATE_{secret.upper()}_FILE", str(tmp_path / "new"))
    assert getattr(load_settings(), secret).get_secret_value() == "new"
    Path("rampgate.toml").write_text(f'{secret}_file = "{tmp_path / "old"}"\n')
    monkeypatch.delenv(f"RAMPGATE_{secret.upper()}_FILE")
    assert getattr(load_settings(), secret).get_secret_value() == "old"
    monkeypatch.setenv(f"RAMPGATE_{secret.upper()}", "newest")
    assert getattr(load_settings(), secret).get_secret_value() == "newest"


@pytest.mark.parametrize("secret", ["opik_api_key", "token", "model_key", "candidate_key"])
def test_a_secret_that_is_missing_or_empty_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secret: str
) -> None:
    """An empty token would let in whoever sends an empty one."""
    name = f"RAMPGATE_{secret.upper()}"
    for text in ("", "  "):
        monkeypatch.setenv(name, text)
        assert "empty" in refusal()
    monkeypatch.delenv(name)
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"canary\xff\xfe")
    for file, words in (("empty", "is empty"), ("absent", "can't read"), ("binary", "no text"), (".", "can't read")):
        monkeypatch.setenv(f"{name}_FILE", str(tmp_path / file))
        said = refusal()
        assert words in said
        assert f"{secret}_file" in said
        assert "canary" not in said


def test_an_unknown_name_is_an_error_that_says_where_it_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAMPGATE_OPIC", "http://x")
    assert refusal().startswith("RAMPGATE_OPIC: opic: ")
    monkeypatch.delenv("RAMPGATE_OPIC")
    Path("rampgate.toml").write_text("grup = 1\n")
    assert "rampgate.toml: grup: " in refusal()
    other = tmp_path / "other.toml"
    other.write_text("[kafka_security]\nprotocl = 'SSL'\n")
    assert "other.toml: kafka_security.protocl: " in refusal(file=other)


@given(
    name=st.from_regex(r"[A-Z][A-Z_]{0,20}", fullmatch=True),
    text=st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=8),
)
@hypothesis_settings(max_examples=80)
def test_whatever_the_environment_says_is_taken_or_named(name: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(f"RAMPGATE_{name}", text)
        assert name == "SETTINGS" or said_of(f"RAMPGATE_{name}") or name.lower() in (*Settings.model_fields, "cache")


def said_of(key: str) -> bool:
    """Whether loading was refused; then the refusal has to name the key."""
    try:
        load_settings()
    except SettingsError as error:
        return key in str(error) or pytest.fail(f"{key} is not named: {error}")
    return False


def test_a_wrong_value_is_named_by_its_source_and_field() -> None:
    for field in Settings.model_fields:
        Path("rampgate.toml").write_text(f"{field} = [[]]\n")
        said = refusal()
        assert "rampgate.toml" in said, field
        assert field in said


def test_a_file_that_was_named_must_be_there_and_be_toml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "no such settings file" in refusal(file=tmp_path / "absent.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("token = 'canary-token\n")
    assert "not valid TOML" in refusal(file=bad)
    assert "canary" not in refusal(file=bad)
    assert "can't be read" in refusal(file=tmp_path)
    (tmp_path / "named.toml").write_text('group = "named"')
    monkeypatch.setenv("RAMPGATE_SETTINGS", str(tmp_path / "named.toml"))
    assert load_settings().group == "named"


@pytest.mark.parametrize(
    "kafka",
    ["broker:9092", "127.0.0.1:9092,broker:9092", "10.0.0.1:9092", "localhost.evil.example:9092", "[2001:db8::1]:9092"],
)
def test_kafka_in_the_clear_is_refused_off_this_machine(kafka: str, tmp_path: Path) -> None:
    assert "in the clear" in refusal({"kafka": kafka})
    plain = {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "user": "u", "secret_file": str(tmp_path / "s")}
    assert "in the clear" in refusal({"kafka": kafka, "kafka_security": plain})
    assert load_settings({"kafka": kafka, "kafka_security": {"protocol": "SSL"}}).kafka == kafka
    assert load_settings({"kafka": kafka, "kafka_security": {"allow_plaintext": True}}).kafka == kafka


@pytest.mark.parametrize(
    "kafka", ["localhost:9092", "127.0.0.1:1, 127.0.0.1:2", "[::1]:9092", " localhost:1 ,", "::1:9092"]
)
def test_kafka_in_the_clear_is_fine_on_this_machine(kafka: str) -> None:
    assert load_settings({"kafka": kafka}).brokers == [broker.strip() for broker in kafka.split(",") if broker.strip()]


@pytest.mark.parametrize("missing", ["mechanism", "user", "secret_file"])
def test_a_kafka_login_must_be_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    (tmp_path / "s").write_text("the password\n")
    whole = SASL | {"secret_file": str(tmp_path / "s")}
    monkeypatch.setenv("RAMPGATE_KAFKA_SECURITY", json.dumps(whole))
    assert load_settings().kafka_security.secret() == "the password"
    del whole[missing]
    monkeypatch.setenv("RAMPGATE_KAFKA_SECURITY", json.dumps(whole))
    said = refusal()
    assert "RAMPGATE_KAFKA_SECURITY" in said
    assert missing in said


def test_a_kafka_password_that_can_not_be_read_is_told(tmp_path: Path) -> None:
    found = load_settings({"kafka_security": SASL | {"secret_file": str(tmp_path / "absent")}})
    with pytest.raises(SettingsError, match=r"secret_file: can't read"):
        found.kafka_security.secret()


@pytest.mark.parametrize(
    "text", ["{", "[]", "1", "null", '"x"', '{"protocol": "SASL"}', '{"password": "canary"}', "canary"]
)
def test_kafka_security_that_is_no_such_object_is_named_and_not_quoted(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("RAMPGATE_KAFKA_SECURITY", text)
    said = refusal()
    assert said.startswith("RAMPGATE_KAFKA_SECURITY: ")
    assert "canary" not in said


@pytest.mark.parametrize(
    "http",
    ["8350", ":8350", "localhost", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "", "https://a:1", "http://a:1/x"],
)
def test_http_wants_an_address_and_a_port(http: str) -> None:
    assert "address:port" in refusal({"http": http})


@pytest.mark.parametrize("http", ["127.0.0.1:0", "0.0.0.0:8350", "[::1]:8350", "localhost:65535"])
def test_http_takes_any_address_with_a_port(http: str) -> None:
    assert load_settings({"http": http}).http == http
    assert load_settings({"http": f"http://{http}/"}).http == http, "as `rampgate dev` and the worker's log print it"


@pytest.mark.parametrize(
    "url",
    [
        "redis://:can/ary@h:6379/0",
        "redis://:canary#1@h:x/0",
        "localhost:6379",
        "http://h",
        "redis://[canary",
        "",
        "redis://h:canary",
        "redis+sentinel://:can/ary@h:1/main",
        "redis+sentinel://:canary#1@h:1/main",
        "redis+sentinel://canary@h:1",
        "redis+sentinel://h:canary/main",
        "redis+sentinel://h:1,:2/main/canary",
        "rediss+sentinel://h/main?sentinel_auth=canary",
        "rediss+sentinel://h/main?canary=1",
    ],
)
def test_a_redis_url_that_can_not_be_used_is_told_without_its_password(url: str) -> None:
    said = refusal({"redis": url})
    assert said.startswith("--redis: redis: ")
    assert "percent-encoded" in said
    assert "can" not in said.replace("can't", "")


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "rediss://u:p%2Fw@h:6379/1",
        "unix:///run/redis.sock",
        "redis://[::1]:1/0",
        "redis+sentinel://h/main",
        "rediss+sentinel://u:p%2Fw@h:26379,[::1]:26380/main/1?sentinel_auth=true",
    ],
)
def test_every_form_of_redis_url_is_taken(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("RAMPGATE_REDIS", url)
    assert load_settings().redis == url


def test_no_error_quotes_a_value_and_no_view_shows_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = ("OPIK_API_KEY", "TOKEN", "MODEL_KEY")
    for name in secrets:
        monkeypatch.setenv(f"RAMPGATE_{name}", "canary-secret")
    monkeypatch.setenv("RAMPGATE_REDIS", "rediss+sentinel://user:canary%2Fsecret@h:1,i:2/main")
    assert "canary" not in json.dumps(shown_settings(load_settings()))
    monkeypatch.setenv("RAMPGATE_REDIS", "rediss://user:canary%2Fsecret@h:1/0")
    monkeypatch.setenv("RAMPGATE_OPIK", "https://user:canary-secret@opik/api")
    found = load_settings()
    assert found.opik_api_key is not None
    for text in (repr(found), str(found)):
        assert "canary-secret" not in text.replace("https://user:canary-secret", "")
    assert "canary" not in json.dumps(shown_settings(found))
    for name, wrong in {"BATCH_RECORDS": "canary-number", "LOG_LEVEL": "canary-level", "TOKENS": "canary"}.items():
        monkeypatch.setenv(f"RAMPGATE_{name}", wrong)
        assert "canary" not in refusal()
        monkeypatch.delenv(f"RAMPGATE_{name}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("redis", "redis://:canary@127.0.0.1:6379/0"),
        ("redis", "rediss://user:canary@h"),
        ("opik", "https://user:canary@opik/api"),
        ("opik", "https://canary@opik/api"),
        ("opik_api_key", "canary"),
        ("token", "canary"),
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """Every user of a machine sees the command lines of all processes."""
    said = refusal({name: value})
    assert said.startswith(f"--{name.replace('_', '-')}: ")
    assert f"RAMPGATE_{name.upper()}" in said
    assert "canary" not in said
    monkeypatch.setenv(f"RAMPGATE_{name.upper()}", value)
    assert load_settings() is not None


def test_a_key_for_seals_that_could_be_guessed_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "too-short")
    with pytest.raises(SettingsError, match="at least 16") as refused:
        load_settings()
    assert "too-short" not in str(refused.value)


@pytest.mark.parametrize("name", ["model_url", "opik", "pagerduty_url", "grafana_url", "dynamodb_endpoint"])
def test_a_url_with_a_key_in_its_query_is_refused_and_not_repeated(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for url in ("https://h/v1?api-key=canary", "https://h/?canary"):
        monkeypatch.setenv(f"RAMPGATE_{name.upper()}", url)
        said = refusal()
        assert "has a query" in said
        assert name in said
        assert "canary" not in said
    if name == "model_url":
        monkeypatch.setenv("RAMPGATE_MODEL_URL", "litellm:https://h/v1?key=canary")
        assert "canary" not in refusal()


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_opik_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    """As a workflow sets it from a variable that is not there. No one would look for the failed calls that follow."""
    monkeypatch.setenv("RAMPGATE_OPIK", empty)
    said = refusal()
    assert "opik" in said
    assert "leave it unset for an Opik on this machine" in said


CARRIED = [
    ({"REDIS": "redis://:canary@redis:6379/0"}, "REDIS"),
    ({"REDIS": "redis://redis:6379/0", "REDIS_PASSWORD": "canary"}, "REDIS"),
    ({"REDIS": "redis://u:canary@[2001:db8::1]:1/0"}, "REDIS"),
    ({"OPIK": "http://opik/api", "OPIK_API_KEY": "canary"}, "OPIK"),
    ({"OPIK": "http://user:canary@opik/api"}, "OPIK"),
    ({"MODEL_URL": "http://model:80/v1", "MODEL_KEY": "canary"}, "MODEL_URL"),
    ({"MODEL_URL": "litellm:http://model/v1", "MODEL_KEY": "canary"}, "MODEL_URL"),
    ({"MODEL_URL": "http://127.0.0.1.evil.example/v1", "MODEL_KEY": "canary"}, "MODEL_URL"),
    ({"PAGERDUTY_URL": "http://pager/v2", "PAGERDUTY_KEY": "canary"}, "PAGERDUTY_URL"),
    ({"GRAFANA_URL": "http://grafana", "GRAFANA_TOKEN": "canary"}, "GRAFANA_URL"),
    ({"SLACK_WEBHOOK": "http://hooks/canary"}, "SLACK_WEBHOOK"),
]


@pytest.mark.parametrize(("environment", "name"), CARRIED)
def test_a_secret_is_not_sent_in_the_clear_to_another_machine(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], name: str
) -> None:
    for key, value in environment.items():
        monkeypatch.setenv(f"RAMPGATE_{key}", value)
    said = refusal()
    assert said.startswith(f"RAMPGATE_{name}: ")
    assert "in the clear" in said
    assert "canary" not in said
    monkeypatch.setenv("RAMPGATE_ALLOW_PLAINTEXT", "true")
    assert load_settings().allow_plaintext


def test_one_host_of_several_that_is_not_this_machine_tells_for_all() -> None:
    assert in_the_clear("redis+sentinel://u:p@127.0.0.1:1,10.0.0.2:1/service/0")
    assert not in_the_clear("redis+sentinel://u:p@127.0.0.1:1,[::1]:1/service/0")
    assert not in_the_clear("rediss+sentinel://u:p@127.0.0.1:1,10.0.0.2:1/service/0")


@pytest.mark.parametrize(
    "environment",
    [
        {"REDIS": "redis://redis:6379/0"},
        {"REDIS": "rediss://:p@redis:6379/0"},
        {"REDIS": "unix:///run/redis.sock", "REDIS_PASSWORD": "p"},
        {"REDIS": "redis://:p@localhost:1/0"},
        {"REDIS": "redis://:p@[::1]:1/0"},
        {"OPIK": "http://opik/api"},
        {"OPIK": "https://opik/api", "OPIK_API_KEY": "k"},
        {"MODEL_URL": "http://127.0.0.1:1/v1", "MODEL_KEY": "k"},
        {"MODEL_URL": "litellm:", "MODEL_KEY": "k"},
        {"PAGERDUTY_KEY": "k"},
    ],
)
def test_what_is_encrypted_local_or_without_a_secret_is_taken(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]
) -> None:
    for key, value in environment.items():
        monkeypatch.setenv(f"RAMPGATE_{key}", value)
    assert load_settings() is not None


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("redis://127.0.0.1:1/0", "redis://:a%2Fb%40c@127.0.0.1:1/0"),
        ("rediss://user@h:1/0", "rediss://user:a%2Fb%40c@h:1/0"),
        ("rediss://user:old@h/0?x=1", "rediss://user:a%2Fb%40c@h/0?x=1"),
    ],
)
def test_redis_password_comes_from_a_setting_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, whole: str
) -> None:
    (tmp_path / "password").write_text("a/b@c\n")
    monkeypatch.setenv("RAMPGATE_REDIS", url)
    monkeypatch.setenv("RAMPGATE_REDIS_PASSWORD_FILE", str(tmp_path / "password"))
    found = load_settings()
    assert found.redis_url == whole
    assert "a/b@c" not in repr(found)
    assert "a%2Fb" not in json.dumps(shown_settings(found))


def test_a_candidate_is_asked_where_the_settings_allow_it_and_nowhere_else() -> None:
    found = Settings(candidate_origins="https://agents.example, http://canary:8000/")
    assert found.candidate_refusal("https://agents.example/run/v1") is None
    assert found.candidate_refusal("http://canary:8000/run?v=1") is None
    assert found.candidate_refusal("http://127.0.0.1:9/run") is None
    for url in (
        "http://agents.example/run",
        "https://agents.example:444/run",
        "https://agents.example.evil/run",
        "http://169.254.169.254/latest/meta-data",
    ):
        assert "CANDIDATE_ORIGINS" in str(found.candidate_refusal(url)), url
    keyed = Settings(candidate_origins="http://canary:8000", candidate_key=SecretStr("k"))
    assert "in the clear" in str(keyed.candidate_refusal("http://canary:8000/run"))
    assert keyed.model_copy(update={"allow_plaintext": True}).candidate_refusal("http://canary:8000/run") is None


def test_settings_can_not_be_changed_afterwards() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_settings().group = "other"
