"""The datasets that the manifest names beside those in Opik, by REST API and by `rampgate datasets`, on a local Opik
(PC5 §2, §5.3, §5.6, R-1)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import uuid6

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.golden import mismatches
from evalcore.manifest.dataset import DatasetThere
from evalcore.registry.registry import Registry
from evalcore.scoring.items import identity
from rampgate.ci_gate.inputs import from_opik
from rampgate.settings import Settings
from streams.opik import datasets as opik_datasets
from streams.opik.client import OpikClient
from streams.opik.datasets import OpikDatasets
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.contract.opik.sync_rig import Rig
from tests.unit.evalcore.registry.registry_disk import built, written

NAME, PROJECT = "consumer-agent-eval", "consumer-agent"


@pytest.fixture
async def datasets(opik: ScriptedOpik) -> AsyncIterator[OpikDatasets]:
    made = OpikClient(opik.url, "default", None, 5.0, 4)
    yield OpikDatasets(made, 0.3)
    await made.close()


async def put(opik: ScriptedOpik, *items: dict[str, Any]) -> None:
    """As one upload, which makes a version."""
    listed = [{"source": "sdk", "data": item} for item in items]
    await opik.call("PUT", "/v1/private/datasets/items",
                    {"dataset_name": NAME, "project_name": PROJECT, "items": listed,
                     "batch_group_id": str(uuid6.uuid7())})  # fmt: skip


def item(category: str | None) -> dict[str, Any]:
    return {"input": "hello", "metadata": {"id": "1"} if category is None else {"category": category}}


async def test_a_dataset_that_is_not_there_is_none(datasets: OpikDatasets) -> None:
    assert await datasets.look(NAME, PROJECT, 7) is None


async def test_items_are_counted_by_category_in_the_version_asked_for(
    datasets: OpikDatasets, opik: ScriptedOpik
) -> None:
    await put(opik, item("greeting"), item("greeting"), item(None), {"category": "safety"})
    first = DatasetThere(1, 1, 4, {"greeting": 2, "": 1, "safety": 1})
    assert await datasets.look(NAME, PROJECT, 1) == first
    await put(opik, item("general_qa"))
    later = await datasets.look(NAME, PROJECT, 1)
    assert later is not None
    assert (later.latest, later.version, later.items) == (2, 1, 4)
    newest = await datasets.look(NAME, None, 2)
    assert newest is not None
    assert (newest.items, newest.categories["general_qa"]) == (5, 1)


async def test_a_version_that_is_not_there_is_told_with_what_there_is_today(
    datasets: OpikDatasets, opik: ScriptedOpik
) -> None:
    await put(opik, item("greeting"))
    assert await datasets.look(NAME, PROJECT, 7) == DatasetThere(1, None, 1, {"greeting": 1})


async def test_more_items_than_a_page_are_all_counted(
    datasets: OpikDatasets, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik_datasets, "PAGE", 3)
    await put(opik, *(item("greeting") for _ in range(9)))
    found = await datasets.look(NAME, PROJECT, 1)
    assert found is not None
    assert found.items == 9


async def test_a_key_that_is_refused_and_a_server_that_fails_are_told_apart(
    datasets: OpikDatasets, opik: ScriptedOpik
) -> None:
    await opik.fault(match={"path": "datasets/retrieve"}, status=401)
    with pytest.raises(Unauthorized):
        await datasets.look(NAME, PROJECT, 7)
    await opik.heal()
    await opik.fault(match={"path": "datasets/retrieve"}, status=500)
    with pytest.raises(Unavailable):
        await datasets.look(NAME, PROJECT, 7)


def golden(opik: ScriptedOpik, folder: Path) -> tuple[Settings, Registry]:
    """A registry whose manifest names version 1 of the dataset in this Opik."""
    changes = {
        "evaluation_manifest.yaml": f"{{dataset: {{name: {NAME}, project: {PROJECT}, version: 1, items: 2}}}}",
    }
    return Settings(configs=written(folder, changes), opik=opik.url), built(changes)


async def test_a_gate_reads_the_items_of_the_manifests_version(opik: ScriptedOpik, tmp_path: Path) -> None:
    """contracts §3: the dataset's name, version and item count are checked; PC5 §5.5: dataset.name at its version."""
    settings, registry = golden(opik, tmp_path)
    assert await from_opik(settings, registry) is None
    await put(opik, item("general_qa"), {**item("general_qa"), "metadata": {"id": "own", "category": "general_qa"}})
    await put(opik, item("later"))
    found = await from_opik(settings, registry)
    assert found is not None
    assert (found.name, found.version, found.latest, len(found.items)) == (NAME, 1, 2, 2)
    assert found.categories == {"general_qa": 2}
    ids = [identity(one) for one in found.items]
    assert "own" in ids
    assert len(set(ids)) == 2
    assert list(mismatches(found, registry)) == []


async def test_a_version_that_is_not_there_is_no_dataset_of_the_gate(opik: ScriptedOpik, tmp_path: Path) -> None:
    await put(opik, item("general_qa"))
    settings, _ = golden(opik, tmp_path)
    assert await from_opik(settings, built({"evaluation_manifest.yaml": f"{{dataset: {{name: {NAME}}}}}"})) is None


async def test_pc5_2_a_missing_dataset_is_told_and_nothing_is_written(rig: Rig) -> None:
    ran = await rig.run("datasets", "--json")
    assert ran.code == 1, ran.err
    first = ran.json["datasets"][0]
    assert (first["of"], first["there"], first["items"]) == ("platform", False, None)
    assert "has no dataset" in first["findings"][0]["message"]
    text = await rig.run("datasets")
    assert first["name"] in text.out
    assert "has no dataset" in text.out
    assert not [name for name in await rig.opik.requests() if name.startswith(("PUT", "PATCH", "DELETE"))]


async def test_an_opik_out_of_reach_and_a_vertical_that_nobody_registered_end_with_2(rig: Rig) -> None:
    ran = await rig.run("datasets", "--json", RAMPGATE_OPIK="http://127.0.0.1:9")
    assert ran.code == 2
    assert ran.json["datasets"][0]["error"]
    ran = await rig.run("datasets", "--vertical", "reciepts")
    assert (ran.code, "receipts" in ran.err) == (2, True)


async def test_one_dataset_is_shown_with_its_items_by_category_and_an_unknown_name_is_told(rig: Rig) -> None:
    listed = await rig.run("datasets", "--json")
    name = listed.json["datasets"][0]["name"]
    items = [{"source": "sdk", "data": {"input": "hi", "metadata": {"category": "gree\x1bting"}}} for _ in range(3)]
    await rig.opik.call("PUT", "/v1/private/datasets/items", {"dataset_name": name, "items": items})
    ran = await rig.run("datasets", name, "--json")
    (shown,) = [one for one in ran.json["datasets"] if one["of"] == "platform"]
    assert (ran.code, shown["items"], shown["categories"]) == (1, 3, {"gree\x1bting": 3}), "another size is a finding"
    text = await rig.run("datasets", name)
    assert "gree ting" in text.out, "no control character of Opik's reaches the terminal"
    ran = await rig.run("datasets", name[:-1])
    assert (ran.code, name in ran.err) == (2, True)
