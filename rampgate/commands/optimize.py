"""Prompt forks for categories that underperform, as drafts for people (PF-9 FR-9, §5.7): `rampgate optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from rampgate.command import Context, Document, command


@command("rampgate.optimisation.report:optimise_report", flags="model configs")
def optimize(
    context: Context,
    vertical: Annotated[str, Option(help="whose categories, thresholds and drafts")],
    results: Annotated[Path, Option(help="an eval run's scores, JSON Lines {judge_id, item_id, score}")],
    agent: Annotated[Path, Option(help="its Agent Definition: YAML with a `prompt`, or a prompt component (XML)")],
    dataset: Annotated[
        Path | None, Option(help="the run's items, JSON Lines; default: the manifest's dataset, from Opik")
    ] = None,
    outputs: Annotated[
        Path | None, Option(help="the agent's outputs in the run, JSON Lines {id, output}; else the items' own")
    ] = None,
    candidate: Annotated[
        str | None,
        Option(help="URL that takes POST {input, metadata, prompt} -> {output, prompt_sha256}; else unmeasured"),
    ] = None,
    category: Annotated[list[str] | None, Option(help="only this category, once or more")] = None,
    out: Annotated[
        Path | None, Option(help="the holding directory; default: specs/verticals/VERTICAL/eval/drafts")
    ] = None,
    proposals: Annotated[int, Option(min=1, max=10, help="forks to ask for")] = 3,
    most_a_week: Annotated[int, Option(min=1, max=50, help="drafts of a vertical in an ISO week")] = 3,
    held_out: Annotated[float, Option(min=0.1, max=0.9, help="the part of the items that is held out")] = 0.5,
    meta_model: Annotated[str, Option(help="the model that proposes")] = "gpt-5",
) -> Document:
    """Propose prompt forks for categories between a set floor and their threshold, as drafts for people.

    A meta-LLM sees the prompt, some failing items and the judges' rubrics; forks are measured on items that it never
    saw. None that newly fails a safety judge, lowers a judge or copies an item is kept. Nothing merges, and nothing but
    the holding directory changes. Exit code 1 if a category underperforms and there is no draft for it.

    Example: rampgate optimize --vertical receipts --results scores.jsonl --agent receipts.yaml --dataset golden.jsonl
    """
    from rampgate.optimisation.command import Options, optimise_prompt

    given = (vertical, results, agent, dataset, outputs, candidate, tuple(category or ()), out)
    return optimise_prompt(Options(context, *given, proposals, most_a_week, held_out, meta_model))
