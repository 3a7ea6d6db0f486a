"""The registry that serves (PC5 FR-10, §5.7): never half-loaded, never worse than what served before."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path

import pytest

from evalcore.registry.files import Tree
from evalcore.reloading import BrokenRegistry
from schemas.judges import Enforcement, Milestone
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.evalcore.registry.registry_reloading import CENTRAL, MANIFEST, alive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_an_edit_is_served_after_a_refresh_and_not_before(root: Path) -> None:
    """PC5 FR-10, §5.7: no restart."""
    registry = alive(root)
    assert registry.current().threshold("brevity") == 4
    rewritten(root / "rules/brevity.yaml", "threshold: 4", "threshold: 3")
    assert registry.current().threshold("brevity") == 4
    result = registry.refresh()
    assert result.valid
    assert registry.last is result
    assert registry.current().threshold("brevity") == 3


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (CENTRAL, b"threshold: [4"),
        (CENTRAL, b""),
        (CENTRAL, b"\xff\xfe\x00"),
        (MANIFEST, b"categories: {}"),
        ("rules/extra.yaml", b"name: Half a judge"),
        ("rules/shop/helpfulness.yaml", b"threshold: 1"),
    ],
)
def test_a_broken_new_version_leaves_the_last_good_one_serving_and_says_so(
    root: Path, file: str, content: bytes
) -> None:
    registry = alive(root)
    served = registry.current()
    (root / file).write_bytes(content)
    result = registry.refresh()
    assert not result.valid
    assert registry.current() is registry.loaded() is served
    assert all(finding.file and finding.fix for finding in result.errors)
    (told,) = [finding for finding in result.warnings if finding.check == "still-serving"]
    assert served.config_hash in told.message
    assert "keeps serving" in told.message


def test_a_repaired_version_is_served_at_the_next_refresh(root: Path) -> None:
    registry = alive(root)
    registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 40")
    assert not registry.refresh().valid
    rewritten(root / CENTRAL, "threshold: 40", "threshold: 3")
    assert registry.refresh().valid
    assert registry.current().threshold("helpfulness") == 3


def test_putting_back_what_served_changes_nothing(root: Path) -> None:
    """PC5 AC-7: a revert; the very registry that served goes on, with its metrics."""
    registry = alive(root)
    served = registry.current()
    rewritten(root / CENTRAL, "threshold: 4", "threshold: 40")
    registry.refresh()
    rewritten(root / CENTRAL, "threshold: 40", "threshold: 4")
    assert registry.refresh().valid
    assert registry.current() is served


def test_files_that_are_removed_are_a_broken_version(root: Path) -> None:
    registry = alive(root)
    served = registry.current()
    (root / CENTRAL).unlink()
    assert not registry.refresh().valid
    for folder in (root / "rules", root.parent / "specs"):
        shutil.rmtree(folder)
    (root / MANIFEST).unlink()
    result = registry.refresh()
    assert not result.valid, "an empty folder is a mount that is gone, not a registry without judges"
    assert registry.current() is served


@pytest.mark.parametrize("gone", ["removed", "a file", "a closed door"])
def test_a_folder_that_can_not_be_read_leaves_the_last_good_one_serving(root: Path, gone: str) -> None:
    def closed(_: Path) -> Tree:
        raise PermissionError(13, "Permission denied", str(root))

    registry = alive(root)
    served = registry.current()
    if gone == "a closed door":
        registry._reading = closed
    else:
        shutil.rmtree(root)
        if gone == "a file":
            root.write_text("x")
    result = registry.refresh()
    assert [finding.check for finding in result.errors] == ["unreadable"]
    assert str(root) in result.errors[0].message
    assert registry.current() is served


def test_a_first_version_that_is_broken_serves_nothing_and_says_everything(root: Path) -> None:
    rewritten(root / CENTRAL, "score_type: INTEGER", "score_type: INT")
    rewritten(root / "rules/brevity.yaml", "floor: 2", "floor: low")
    registry = alive(root)
    for _ in range(2):
        with pytest.raises(BrokenRegistry, match="can't be served") as raised:
            registry.current()
        assert isinstance(raised.value, ValueError)
        found = {(Path(finding.file).name, finding.field) for finding in raised.value.result.errors}
        assert found >= {("helpfulness.yaml", "score_type"), ("brevity.yaml", "floor")}
        assert "helpfulness.yaml" in str(raised.value)
    assert registry.loaded() is None
    rewritten(root / CENTRAL, "score_type: INT", "score_type: INTEGER")
    rewritten(root / "rules/brevity.yaml", "floor: low", "floor: 2")
    assert registry.current().threshold("brevity") == 4, "repaired files are taken without being asked for"


def test_a_folder_that_is_not_there_serves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BrokenRegistry, match="no such folder"):
        alive(tmp_path / "nowhere").current()


def test_an_override_that_has_ended_ends_in_a_running_process_too(root: Path) -> None:
    """PC5 §5.2: the files are the same, and what they allowed must not go on. It blocks; the registry goes on serving,
    also in a process that starts now."""
    entry = (
        "{judge: helpfulness, milestone: pre_ramp, enforcement: warn, pull_request: '#1', "
        "justification: why, approved_on: 2026-11-01, expires: 2026-11-30}"
    )
    written(
        root.parent,
        {CENTRAL: "{enforcement: {pre_ramp: warn}}", "enforcement-overrides.yaml": f"{{overrides: [{entry}]}}"},
    )
    day = [TODAY]
    registry = alive(root, today=lambda: day[0])
    assert registry.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.WARN
    day[0] = date(2026, 12, 1)
    result = registry.refresh()
    assert registry.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.BLOCK
    assert result.valid
    assert "looser-needs-override" in {finding.check for finding in result.warnings}
    assert registry.refresh() == result
    fresh = alive(root, today=lambda: day[0])
    assert fresh.current().judge("helpfulness").enforcement[Milestone.PRE_RAMP] is Enforcement.BLOCK


COMPONENT = "../prompts/components/returns.xml"
RETURNS = """<component id="returns" version="1.0">
  <capability category="shop_returns" archetype="conversation"><description>Returns.</description></capability>
  <prompt><role>You take things back.</role></prompt>
</component>
"""


def _naming_a_component(root: Path) -> None:
    (root / COMPONENT).parent.mkdir(parents=True)
    (root / COMPONENT).resolve().write_text(RETURNS)
    rewritten(root / "rules/brevity.yaml", "threshold: 4", "threshold: 4\ncomponents: [returns]")


@pytest.mark.parametrize("how", ["the judge names another one", "the component is renamed"])
def test_pf9_fr13_a_component_that_is_not_there_is_a_finding_and_the_last_good_version_serves(
    root: Path, how: str
) -> None:
    _naming_a_component(root)
    registry = alive(root)
    served = registry.current()
    if how == "the component is renamed":
        (root / COMPONENT).resolve().rename((root / COMPONENT).resolve().with_name("refunds.xml"))
        rewritten((root / COMPONENT).resolve().with_name("refunds.xml"), 'id="returns"', 'id="refunds"')
    else:
        rewritten(root / "rules/brevity.yaml", "[returns]", "[retruns]")
    result = registry.refresh()
    (found,) = result.errors
    assert (found.check, Path(found.file).name, found.field) == ("component-exists", "brevity.yaml", "components[0]")
    assert found.line > 1
    assert "prompts/components" in found.fix
    assert registry.current() is served
    with pytest.raises(BrokenRegistry, match=r"brevity\.yaml:\d+:\d+: .*components\[0\]"):
        alive(root).current()
