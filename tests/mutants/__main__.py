"""`make mutants`: applies each declared change to a copy of the project and demands that its tests fail.

A change that only stops the file from being imported is no catch: at least one test has to run and fail.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.mutants.declared import Mutant, must_compile, mutants, subjects
from tests.root import ROOT

PYTEST = ["-x", "-q", "-p", "no:cacheprovider", "-o", "timeout=120", "--tb=line", "--hypothesis-profile=mutants"]
LONGEST = 600.0
"""Seconds for one mutant's tests."""
OURS = ("schemas", "evalcore", "agents", "streams", "rampgate", "tests", "conftest")
FAILED = re.compile(r"^FAILED (.+?)(?: - (.*))?$", re.MULTILINE)
NO_CATCH = re.compile(r"(SyntaxError|IndentationError|NameError|ImportError|ModuleNotFoundError|UnboundLocalError)\b")
_moments = count(int(time.time()))


@dataclass(frozen=True)
class Result:
    """`code`: pytest's exit code, None when it took longer than `LONGEST`."""

    code: int | None
    output: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--subject", action="append", choices=subjects(), default=[], help="only these; repeatable")
    parser.add_argument("--what", default="", help="only those whose description holds this")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many run side by side")
    parser.add_argument("--no-baseline", action="store_true", help="don't run the tests without any change first")
    args = parser.parse_args()
    chosen = [mutant for mutant in mutants(args.subject) if args.what in mutant.what]
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [copied(Path(folder) / str(number)) for number in range(max(args.jobs, 1))]
        if not args.no_baseline and not sound(copies[0], chosen):
            return 2
        survivors = []
        for mutant, result in side_by_side(copies, chosen):
            caught, why = verdict(result)
            print(f"{'caught  ' if caught else 'SURVIVED'} {result.seconds:5.1f} s  {mutant.name}  [{why}]", flush=True)
            if not caught:
                survivors.append(mutant)
    alive = Counter(mutant.subject for mutant in survivors)
    print(f"\n{'subject':<24}{'mutants':>8}{'caught':>8}")
    for subject, number in sorted(Counter(mutant.subject for mutant in chosen).items()):
        print(f"{subject:<24}{number:>8}{number - alive[subject]:>8}")
    print(f"{'all':<24}{len(chosen):>8}{len(chosen) - len(survivors):>8}   in {time.monotonic() - began:.0f} s")
    for mutant in survivors:
        print(f"survived: {mutant.name} ({mutant.file}; {' '.join(mutant.tests)})")
    return 1 if survivors or not chosen else 0


def verdict(result: Result) -> tuple[bool, str]:
    """Whether a test noticed, and which or why not."""
    if result.code is None:
        return False, f"no end in {LONGEST:.0f} s"
    failed = [test for test, why in FAILED.findall(result.output) if not NO_CATCH.match(why)]
    if result.code == 1 and failed:
        return True, failed[0].rpartition("::")[2]
    lines = result.output.strip().splitlines()
    return False, f"exit code {result.code}" + (f": {lines[-1]}" if lines else "")


def sound(copy: Path, chosen: Sequence[Mutant]) -> bool:
    """Whether the tests pass without any change. What they import of others is imported here then, once for all."""
    tests = sorted({test for mutant in chosen for test in mutant.tests})
    tests = [test for test in tests if "::" not in test or test.partition("::")[0] not in tests]
    names = copy / "imported.txt"

    def run() -> int:
        code = int(pytest.main([*PYTEST, *tests]))
        names.write_text("\n".join(name for name in sys.modules if name.partition(".")[0] not in OURS))
        return code

    child = Child(copy, run)
    while (result := child.ended()) is None:
        time.sleep(0.1)
    if result.code != 0:
        print(f"without any change, these tests must pass:\n{result.output}")
        return False
    for name in names.read_text().splitlines():
        with suppress(Exception):
            importlib.import_module(name)
    return True


def side_by_side(copies: Sequence[Path], chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, Result]]:
    """Each mutant with what its tests said, as they end; one at a time in each copy."""
    gc.collect()
    gc.freeze()
    waiting, free = list(chosen), list(copies)
    running: list[tuple[Mutant, str, Child]] = []
    while waiting or running:
        while waiting and free:
            mutant, copy = waiting.pop(0), free.pop()
            before = (copy / mutant.file).read_text()
            change(copy / mutant.file, mutant.applied(copy))
            running.append((mutant, before, Child(copy, lambda tests=mutant.tests: pytest.main([*PYTEST, *tests]))))
        for one in list(running):
            mutant, before, child = one
            result = child.ended()
            if result is not None:
                change(child.copy / mutant.file, before)
                running.remove(one)
                free.append(child.copy)
                yield mutant, result
        time.sleep(0.02)


class Child:
    """A forked process that runs on a copy of the project: what this one has imported it need not import again."""

    def __init__(self, copy: Path, run: Callable[[], int]) -> None:
        self.copy, self._began = copy, time.monotonic()
        self._output = copy / "output.txt"
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            code = 70
            try:
                self._settle_in()
                code = int(run())
                sys.stdout.flush()
            finally:
                os._exit(code)

    def _settle_in(self) -> None:
        os.setsid()
        os.nice(10)
        target = os.open(self._output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(target, 2)
        os.chdir(self.copy)
        os.environ.update(PYTHONPATH=str(self.copy), COLUMNS="400")
        sys.path[:] = [str(self.copy), *(path for path in sys.path if path and Path(path).resolve() != ROOT)]
        for name in list(sys.modules):
            if name.partition(".")[0] in OURS:
                del sys.modules[name]
        importlib.invalidate_caches()

    def ended(self) -> Result | None:
        """What came out, once it has; a child that takes too long is killed, with all that it has started."""
        seconds = time.monotonic() - self._began
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid and seconds < LONGEST:
            return None
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        if not pid:
            os.waitpid(self._pid, 0)
        output = self._output.read_text(errors="replace") if self._output.exists() else ""
        return Result(os.waitstatus_to_exitcode(status) if pid else None, output, seconds)


def copied(folder: Path) -> Path:
    """The project as git lists it, and what else lies in its folder untouched (jars, tools) by a link."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for name in (".cache", ".venv"):
        if (ROOT / name).is_dir():
            (folder / name).symlink_to((ROOT / name).resolve())
    return folder


def change(path: Path, text: str) -> None:
    """Write it, with a time that no compiled file can have been made from. Raises SyntaxError for what is no Python."""
    must_compile(str(path), text)
    path.write_text(text)
    moment = next(_moments)
    os.utime(path, (moment, moment))


if __name__ == "__main__":
    sys.exit(main())
