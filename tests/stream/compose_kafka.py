"""The compose file's Kafka on this machine: the broker's settings, users and rights are read from what compose uses."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.ports import release_port, reserve_port
from tests.root import ROOT

SERVICES: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
FILES: Final = ROOT / "configs" / "compose"
OURS: Final = {"node.id", "process.roles", "log.dirs", "controller.quorum.voters"}
"""Settings that belong to a node of this machine, not to who may do what."""
PATTERNS: Final = {"literal": ResourcePatternType.LITERAL, "prefixed": ResourcePatternType.PREFIXED}
STAND_IN: Final = """\
#!/bin/sh
{
    printf '%s\\n' "${0##*/}" "$@"
    for last; do :; done
    if [ -f "$last" ]; then cat "$last"; fi
    echo
} >>"$CALLS"
"""
"""Kafka's own tools need jars that a broker does not. This notes how it is called, and what is in its file."""


def server_settings(ports: dict[str, int]) -> dict[str, str]:
    """The settings that the image makes of its environment, with the listeners on these ports of 127.0.0.1."""

    def here(found: re.Match[str]) -> str:
        return f"{found[1]}://127.0.0.1:{ports[found[1]]}"

    settings = {}
    for name, value in SERVICES["kafka"]["environment"].items():
        # As the image spells them (KafkaDockerWrapper of apache/kafka).
        key = name.removeprefix("KAFKA_").lower().replace("_", ".").replace("...", "-").replace("..", "_")
        settings[key] = re.sub(r"(\w+)://[^,:]*:\d+", here, value)
    return {key: value for key, value in settings.items() if key not in OURS}


class ComposeKafka:
    """A broker with these settings on which `prepare_kafka.sh` has run. `passwords`: those of its users."""

    def __init__(self, folder: Path) -> None:
        self._clients, self._host = reserve_port(), reserve_port()
        self.address = f"127.0.0.1:{self._clients}"
        """Where clients log in."""
        self.cluster = KafkaCluster()
        node = self.cluster.nodes[0]
        ports = {"CLIENTS": self._clients, "HOST": self._host, "OWN": node.port, "CONTROLLER": node.controller_port}
        node.join(f"{node.number}@127.0.0.1:{node.controller_port}", server_settings(ports))
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        mounted = [name for name in SERVICES["topics"]["secrets"] if name.startswith("kafka_")]
        for name in mounted:
            (self.secrets / name).write_text(secrets.token_hex(8))
        self._folder = folder

    def start(self) -> None:
        self.cluster.start()
        calls = self._calls()
        self.admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        for tool, *arguments in calls:
            assert arguments[:2] == ["--bootstrap-server", self.cluster.bootstrap]
            {"kafka-topics.sh": self._make, "kafka-configs.sh": self._enrol, "kafka-acls.sh": self._grant}[tool](
                arguments[2:]
            )

    def close(self) -> None:
        self.cluster.close()
        for port in (self._clients, self._host):
            release_port(port)

    def login(self, user: str, password: str | None = None) -> dict[str, Any]:
        """librdkafka's options of a client of this user."""
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password or (self.secrets / f"kafka_{user}_password").read_text(),
            "log_level": 0,
        }

    def security(self, service: str) -> str:
        """What the compose file gives a service as `RAMPGATE_KAFKA_SECURITY`, with the secret where it lies here."""
        told = json.loads(SERVICES[service]["environment"]["RAMPGATE_KAFKA_SECURITY"])
        mounted = Path(told["secret_file"])
        assert mounted.name in SERVICES[service]["secrets"]
        return json.dumps(told | {"secret_file": str(self.secrets / mounted.name)})

    def enrol(self, user: str, password: str) -> None:
        """A user of whom `prepare_kafka.sh` knows nothing."""
        self._enrol(["--alter", "--entity-type", "users", "--entity-name", user, "--add-config-file", "", password])

    def _calls(self) -> list[list[str]]:
        """How `prepare_kafka.sh` calls Kafka's tools."""
        tools, calls = self._folder / "tools", self._folder / "calls"
        tools.mkdir()
        for name in ("kafka-topics.sh", "kafka-configs.sh", "kafka-acls.sh"):
            (tools / name).write_text(STAND_IN)
            (tools / name).chmod(0o755)
        environment = {
            "PATH": os.environ["PATH"],
            "KAFKA_TOOLS": str(tools),
            "KAFKA_OWN": self.cluster.bootstrap,
            "SECRETS": str(self.secrets),
            "RIGHTS": str(FILES / "kafka.acls"),
            "CALLS": str(calls),
        }
        script = FILES / Path(SERVICES["topics"]["entrypoint"][-1]).name
        subprocess.run(["bash", str(script)], env=environment, check=True, timeout=60)
        return [call.splitlines() for call in calls.read_text().strip().split("\n\n")]

    def _make(self, arguments: list[str]) -> None:
        given = dict(pairwise(arguments))
        config = dict(value.split("=") for name, value in pairwise(arguments) if name == "--config")
        topic = NewTopic(
            given["--topic"], int(given["--partitions"]), int(given["--replication-factor"]), config=config
        )
        for made in self.admin.create_topics([topic]).values():
            made.result(30)

    def _enrol(self, arguments: list[str]) -> None:
        assert arguments[:4] == ["--alter", "--entity-type", "users", "--entity-name"]
        password = re.sub(r"^SCRAM-SHA-512=iterations=8192,password=(\w+)$", r"\1", arguments[-1])
        change = UserScramCredentialUpsertion(
            arguments[4], ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192), password.encode()
        )
        for made in self.admin.alter_user_scram_credentials([change]).values():
            made.result(30)

    def _grant(self, arguments: list[str]) -> None:
        given = list(pairwise(arguments))
        ((_, user),) = [pair for pair in given if pair[0] == "--allow-principal"]
        ((_, pattern),) = [pair for pair in given if pair[0] == "--resource-pattern-type"]
        operations = [re.sub("(?<!^)([A-Z])", r"_\1", value).upper() for name, value in given if name == "--operation"]
        sorts = {"--topic": "TOPIC", "--group": "GROUP", "--transactional-id": "TRANSACTIONAL_ID"}
        wanted = [
            AclBinding(
                ResourceType[sorts[name]],
                value,
                PATTERNS[pattern],
                user,
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for name, value in given
            if name in sorts
            for operation in operations
        ]
        assert wanted, arguments
        for made in self.admin.create_acls(wanted).values():
            made.result(30)


def refusal(error: KafkaException) -> str:
    """The name of Kafka's error."""
    return str(error.args[0].name())
