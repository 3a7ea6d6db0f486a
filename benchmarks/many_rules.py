"""Registries to measure with: the shipped one in a folder of its own, and one of many rule files."""

from __future__ import annotations

import re
import shutil
from copy import deepcopy
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parents[1]
COUNT = 500
_A_CATEGORY = 10


def shipped(folder: Path) -> Path:
    """A copy that may be changed; its root."""
    for name in ("configs", "specs", "prompts"):
        shutil.copytree(HERE / name, folder / name)
    return folder / "configs"


def many_rules(folder: Path, count: int = COUNT) -> Path:
    """`count` valid rule files, each a shipped judge under another name, with the manifest that lists them."""
    rules = folder / "configs/rules"
    rules.mkdir(parents=True)
    texts = [(file.stem, file.read_text()) for file in sorted((HERE / "configs/rules").glob("*.yaml"))]
    manifest = yaml.safe_load((HERE / "configs/evaluation_manifest.yaml").read_text())
    names, thresholds = [], {}
    for number in range(count):
        stem, text = texts[number % len(texts)]
        name = f"{stem}_{number:03}"
        for field in ("id", "score_name"):
            text = re.sub(rf"^{field}: .*$", f"{field}: {name}", text, flags=re.MULTILINE)
        (rules / f"{name}.yaml").write_text(text)
        names.append(name)
        if stem in manifest["thresholds"]:
            thresholds[name] = deepcopy(manifest["thresholds"][stem])  # or YAML writes an anchor
    made = {
        "dataset": manifest["dataset"],
        "schema": manifest["schema"],
        "archetypes": manifest["archetypes"],
        "categories": {
            f"made_{begin:03}": {"judges": names[begin : begin + _A_CATEGORY]} for begin in range(0, count, _A_CATEGORY)
        },
        "global_metrics": {"judges": []},
        "thresholds": thresholds,
    }
    (folder / "configs/evaluation_manifest.yaml").write_text(yaml.safe_dump(made, sort_keys=False))
    return folder / "configs"
