"""A spec in a folder of its own, as tests write it."""

from __future__ import annotations

from pathlib import Path

SPEC = """\
agent: rag-agent
candidate:
  entry: agent:answer
queries:
- query: One?
  id: one
  tags: [smoke, edge]
  correctness: {expected_in_answer: [yes]}
- query: Two?
  cost: {max_llm_calls: 1}
"""


def written(folder: Path, text: str = SPEC, name: str = "agentci_spec.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text("def answer(case):\n    return {'output': 'yes'}\n")
    path = folder / name
    path.write_text(text)
    return path
