"""A vertical that names namespaces has its traces completed: what its file may say, and which seals then hold."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evalcore.remediation.sealing import TRACES, Form, Seals
from rampgate.settings import Settings
from rampgate.wiring import make_policy
from schemas.verticals import Vertical

NOW, BEFORE = "the key of now, long", "the key before, long"
TRACE = {"metadata": {"vertical": "ops"}, "proposal": {"namespace": "shop", "name": "x"}, "output": "so"}


def vertical(**more: Any) -> Vertical:
    return Vertical.model_validate({"name": "ops", "project": "p", **more})


def test_its_traces_wait_and_what_either_key_sealed_is_completed() -> None:
    settings = Settings.model_validate({"seal_key": NOW, "seal_key_previous": BEFORE, "enrichment_wait_seconds": 5})
    policy = make_policy(settings, {"ops": vertical(proposal_namespaces=["shop"]), "other": vertical()})

    assert policy.enrichment_wait == 5_000
    assert policy.forms.namespaces == {"ops": {"shop"}}
    assert policy.forms.open(TRACE).form is Form.BARE
    for key, form in ((NOW, Form.COMPLETED), (BEFORE, Form.COMPLETED), ("another key, as long", Form.BARE)):
        assert policy.forms.open(Seals.of(TRACES, key).sealed(TRACE)).form is form
    assert policy.forms.seals.sealed(TRACE) == Seals.of(TRACES, NOW).sealed(TRACE)


def test_without_namespaces_nothing_waits() -> None:
    assert make_policy(Settings(), {"ops": vertical()}).forms.open(TRACE).form is Form.PLAIN


@pytest.mark.parametrize("namespace", ["Shop", "a/b", "", "-x", "x.y", "n" * 64, 3])
def test_a_namespace_is_one_of_kubernetes(namespace: object) -> None:
    with pytest.raises(ValidationError, match="proposal_namespaces"):
        vertical(proposal_namespaces=[namespace])


def test_its_answer_is_where_the_summary_is_put() -> None:
    assert vertical(proposal_namespaces=["shop"], trace={"answer": "output.reply.text"})
    assert vertical(trace={"answer": "metadata.reply"})
    for answer in ("metadata.reply", "outputs.reply"):
        with pytest.raises(ValidationError, match=r"trace\.answer: must begin with output where proposal_namespaces"):
            vertical(proposal_namespaces=["shop"], trace={"answer": answer})
