"""The registry: one frozen view of all judges, categories and thresholds; a lookup reads a dictionary (PC5 NFR-1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from evalcore.registry.enforcement import permits
from evalcore.registry.files import RegistryFiles
from evalcore.registry.judge import Judge, Limits, digest, version_in, view
from evalcore.registry.thresholds import ThresholdTypeError
from evalcore.yaml.suggestions import UnknownArchetype, UnknownCategory, UnknownJudge
from schemas.checks.canaries import CanaryFile
from schemas.judges import Classification, Milestone, Score, judge_id
from schemas.manifests import Category, Composite, GateDefaults, SampleSection, VerticalDataset

__all__ = [
    "Judge", "Limits", "Registry", "ThresholdTypeError", "UnknownArchetype", "UnknownCategory", "UnknownJudge", "build"
]  # fmt: skip

Seen = str | None
"""The vertical that looks; None for the platform's view."""
Judges = tuple[Judge, ...]
_SUB_AGENT = ("sub_agent_id", "sub_agent")
"""How filters spell the field."""
WordT = TypeVar("WordT", Milestone, Classification)


@dataclass(frozen=True, eq=False)
class Registry:
    """All judges, categories and thresholds of one version of the files.

    Each lookup takes `vertical`: with it, judges have that vertical's thresholds, floor, tolerance, filter and
    provenance. A vertical without files sees what the platform sees; `verticals` are those that have some. Lookups take
    judge ids in kebab and in snake case. Unknown names raise UnknownJudge, UnknownCategory or UnknownArchetype, each a
    KeyError.
    """

    judges: Mapping[tuple[str, Seen], Judge]
    """The key is (id in snake case, vertical); each vertical has every judge."""
    categories: Mapping[tuple[str, Seen], Judges]
    """The judges that fire on an item: the category's own, the global metrics, every safety judge; each once."""
    category_files: Mapping[str, Category]
    composites: Mapping[str, Composite]
    archetypes: Mapping[str, tuple[str, ...]]
    verticals: frozenset[str]
    gates: GateDefaults
    sample: SampleSection
    datasets: Mapping[Seen, VerticalDataset]
    """Golden sets: the platform's under None, and of each vertical that has one its own."""
    manifest: dict[str, Any]
    """The content of its file. Lookups never read it, so a caller's change to it changes no verdict."""
    config_hash: str
    """The hash of everything that lookups depend on: two registries with one hash give the same answers."""
    canaries: CanaryFile | None = None
    """Planted texts and limits of `rampgate check canaries`, None without the file. No lookup depends on them."""

    def judge(self, judge_id_: str, vertical: Seen = None) -> Judge:
        found = self.judges.get((judge_id_, vertical))
        return self._judge(judge_id_, vertical) if found is None else found

    metric = judge

    def _judge(self, name: str, vertical: Seen) -> Judge:
        _must_be_text(name, "a judge's id", self.rules)
        key = judge_id(name)
        found = self.judges.get((key, vertical)) or self.judges.get((key, None))
        if found is None:
            raise UnknownJudge(name, self.rules())
        return found

    def category(self, name: str, vertical: Seen = None) -> Judges:
        found = self.categories.get((name, vertical), self.categories.get((name, None)))
        if found is None:
            _must_be_text(name, "a category", lambda: self.category_files)
            raise UnknownCategory(name, self.category_files)
        return found

    def threshold(self, judge_id_: str, milestone: str | None = None, vertical: Seen = None) -> Score:
        """Returns the threshold of a judge, or of a `judge.dimension`. Raises ValueError for an unknown
        milestone (PC5 FR-2)."""
        of = self.judges.get((judge_id_, vertical)) or self._limits(judge_id_, vertical)
        if milestone is None:
            return of.default_threshold
        try:
            return of.thresholds[milestone]  # type: ignore[index]  # a milestone's text is found as the milestone
        except KeyError:
            return of.thresholds[_word(Milestone, milestone)]

    def members(self, name: str) -> list[str]:
        """Returns a composite's judges; for any other name, the name itself."""
        composite = self.composites.get(name)
        return [name] if composite is None or (judge_id(name), None) in self.judges else composite.judges

    def spelled(self, name: str) -> str:
        """Returns the one spelling of a judge's id, or of `judge.dimension`. Raises UnknownJudge."""
        self._limits(name, None)
        whole, dot, dimension = name.partition(".")
        return f"{judge_id(whole)}{dot}{judge_id(dimension)}"

    def _limits(self, name: str, vertical: Seen) -> Judge | Limits:
        _must_be_text(name, "a judge's id", self.rules)
        whole, dot, dimension = name.partition(".")
        judge = self._judge(whole, vertical)
        if not dot:
            return judge
        try:
            return judge.dimensions[judge_id(dimension)]
        except KeyError:
            raise UnknownJudge(name, [f"{judge.id}.{known}" for known in judge.dimensions]) from None

    def owner(self, vertical: Seen) -> Seen:
        """Returns whose golden set the vertical is judged on: its own name, or None for the platform's."""
        return vertical if vertical in self.datasets else None

    def dataset(self, vertical: Seen = None) -> VerticalDataset:
        """Returns the golden set that the vertical is judged on (PC5 FR-7, §5.6). Raises KeyError without a
        manifest."""
        return self.datasets[self.owner(vertical)]

    def rules(self) -> list[str]:
        return sorted(name for name, vertical in self.judges if vertical is None)

    def all(self, vertical: Seen = None) -> Judges:
        return tuple(self.judge(name, vertical) for name in self.rules())

    def classified(self, classification: str, vertical: Seen = None) -> Judges:
        wanted = _word(Classification, classification)
        return tuple(judge for judge in self.all(vertical) if judge.classification is wanted)

    def for_archetype(self, archetype: str, vertical: Seen = None) -> Judges:
        """Returns the judges that score an archetype's sub-agents (PF-9 FR-5): those that name it, those that name
        none, and every safety judge."""
        if archetype not in self.archetypes:
            raise UnknownArchetype(archetype, self.archetypes)
        return tuple(
            j for j in self.all(vertical) if j.safety or not j.rule.applies_to or archetype in j.rule.applies_to
        )

    @property
    def sub_agents(self) -> frozenset[str]:
        """Every sub-agent that the files name: in archetypes, in what judges apply to, and in judges' filters."""
        named = {agent for agents in self.archetypes.values() for agent in agents}
        for judge in self.judges.values():
            named.update(judge.sub_agents)
            if judge.filter is not None and judge.filter.compared in _SUB_AGENT:
                named.update(value for value in judge.filter.values if isinstance(value, str))
        return frozenset(named)

    def for_sub_agent(self, sub_agent: str, vertical: Seen = None) -> Judges:
        """Returns the judges of a sub-agent; for one without archetype, judges for all and every safety judge."""
        return tuple(j for j in self.all(vertical) if j.safety or not j.sub_agents or sub_agent in j.sub_agents)


def build(files: RegistryFiles) -> Registry:
    """Builds the registry from files without errors. Raises UnknownJudge where the manifest names a judge that has
    no rule file, and ThresholdTypeError where a threshold does not fit its judge."""
    manifest = files.manifest.model if files.manifest else None
    own = manifest.categories if manifest else {}
    verticals = _verticals(files, own)
    seen: list[Seen] = [None, *sorted(verticals)]
    versions = {name: version_in(files, name) for name in sorted(files.rules)}
    judges = {(name, vertical): view(files, name, vertical, versions[name]) for vertical in seen for name in versions}
    everywhere = manifest.global_metrics.judges if manifest else []
    composites = manifest.composites if manifest else {}
    categories = {
        (name, vertical): _firing(judges, [*category.judges, *everywhere], composites, vertical)
        for name, category in own.items()
        for vertical in seen
    }
    archetypes = manifest.archetypes if manifest else {}
    return Registry(
        judges=MappingProxyType(judges),
        categories=MappingProxyType(categories),
        category_files=MappingProxyType(dict(own)),
        composites=MappingProxyType(dict(composites)),
        archetypes=MappingProxyType({name: tuple(agents) for name, agents in archetypes.items()}),
        verticals=verticals,
        gates=manifest.gates if manifest else GateDefaults(),
        sample=manifest.sample if manifest else SampleSection(),
        datasets=MappingProxyType(_datasets(files)),
        manifest=files.manifest.document.data if files.manifest else {},
        config_hash=config_hash(files),
        canaries=files.canaries.model if files.canaries else None,
    )


def config_hash(files: RegistryFiles) -> str:
    """Returns a hash of the content; comments, order of keys and expired overrides make no difference."""
    overrides = files.overrides.model.overrides if files.overrides else []
    active = [o for o in overrides if permits([o], files.today, o.milestone, o.vertical)]
    return digest(
        {
            "rules": {name: file.model.model_dump(mode="json") for name, file in files.rules.items()},
            "vertical_rules": [
                [*key, file.model.model_dump(mode="json")] for key, file in sorted(files.vertical_rules.items())
            ],
            "manifest": files.manifest.model.model_dump(mode="json") if files.manifest else None,
            "overrides": sorted((o.model_dump(mode="json") for o in active), key=digest),
            "verticals": sorted(files.verticals),
            **({"traces": {name: one.model_dump() for name, one in files.layouts.items()}} if files.layouts else {}),
            **({"adjudications": held} if (held := _held(files)) else {}),
            **({"specs": {name: one.hash for name, one in files.specs.items()}} if files.specs else {}),
            **({"noise": files.noise.model.model_dump(mode="json")} if files.noise else {}),
            "datasets": {name or "": one.model_dump(mode="json") for name, one in _datasets(files).items()},
        }
    )


def _held(files: RegistryFiles) -> list[Any]:
    """The adjudications that hold today."""
    entries = files.adjudications.model.adjudications if files.adjudications else []
    held = [one for one in entries if one.adjudicated_on <= files.today <= one.expires]
    return sorted((one.model_dump(mode="json") for one in held), key=digest)


def _verticals(files: RegistryFiles, categories: Mapping[str, Category]) -> frozenset[str]:
    named = {category.vertical for category in categories.values() if category.vertical is not None}
    overlaid = {vertical for vertical, _ in files.vertical_rules}
    return files.verticals | overlaid | named | files.extensions.keys() | files.selections.keys()


def _datasets(files: RegistryFiles) -> dict[Seen, VerticalDataset]:
    """Returns the golden sets by their owner. A vertical's that names no project lives in the vertical's own."""
    if files.manifest is None:
        return {}
    manifest, registered = files.manifest.model, files.registrations
    found: dict[Seen, VerticalDataset] = {None: VerticalDataset(**manifest.dataset.model_dump())}
    for vertical, own in manifest.datasets.items():
        project = own.project or (registered[vertical].model.project if vertical in registered else None)
        found[vertical] = own.model_copy(update={"project": project})
    return found


def _firing(
    judges: Mapping[tuple[str, Seen], Judge], named: list[str], composites: Mapping[str, Composite], vertical: Seen
) -> Judges:
    """Returns the judges that fire for the names of a category. Safety judges are inherited (PF-9 §5.5), a composite
    means its members, and a disabled judge is left out."""
    found: dict[str, Judge] = {}
    for name in named:
        members = composites[name].judges if name in composites and (judge_id(name), None) not in judges else [name]
        for member in map(judge_id, members):
            if (member, vertical) not in judges:
                raise UnknownJudge(member, [known for known, seen in judges if seen is None])
            found[member] = judges[member, vertical]
    for (name, seen), judge in judges.items():
        if seen == vertical and judge.safety:
            found[name] = judge
    return tuple(judge for judge in found.values() if judge.fires)


def _must_be_text(name: object, what: str, known: Callable[[], Iterable[str]]) -> None:
    """Raises TypeError for what a caller took for a name, such as None."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is a text, not {name!r:.80}; there are {', '.join(known())}")


def _word(kind: type[WordT], word: str) -> WordT:
    """Returns the member of a closed list. Raises ValueError with the whole list."""
    try:
        return kind(word)
    except ValueError:
        raise ValueError(f"no {kind.__name__.lower()} {word!r}; there are {', '.join(kind)}") from None
