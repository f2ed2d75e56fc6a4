"""Compares the runs of this tree with those of another commit."""

import argparse
import json
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import compare
import programs
from programs import Failed, Unusable

METHODS = "random,deficit,splitnn+guard,asfl+guard,fedavg+guard,hsfl+guard,tilp"


@dataclass(frozen=True)
class Case:
    """One run that both programs make."""

    scenario: str
    method: str
    rounds: int | None  # None: the scenario's own

    @property
    def name(self):
        length = "" if self.rounds is None else f"-{self.rounds}"
        return f"{self.scenario}-{self.method}{length}"

    def arguments(self):
        length = [] if self.rounds is None else ["--rounds", str(self.rounds)]
        return [self.scenario, "--method", self.method, "--seed", "0", *length]


class Old:
    """The program of the commit and its kept runs. It is built only if a run is missing."""

    def __init__(self, commit, binary, work):
        self.commit = commit
        self.binary = binary
        self.folder = work / commit

    def run(self, case):
        folder = self.folder / "runs" / case.name
        if folder.exists():
            self.confirm_commit(folder)
        else:
            if self.binary is None:
                self.binary = programs.build_commit(self.commit, self.folder)
            programs.run(self.binary, case, folder, self.folder / "cache", self.confirm_commit)
        return folder

    def confirm_commit(self, folder):
        """Refuses runs whose manifest names another commit."""
        try:
            made_by = json.loads((folder / "manifest.json").read_text()).get("commit")
        except (OSError, ValueError):
            return
        if isinstance(made_by, str) and re.match("[0-9a-f]{40}", made_by) and not made_by.startswith(self.commit):
            raise Unusable(f"the run {folder} was made by commit {made_by}, expected {self.commit}")


class New:
    """The program of the present tree. Its runs are repeated every time."""

    def __init__(self, binary):
        self.binary = binary if binary is not None else programs.build_present()
        place = programs.ROOT / "target" / "same"
        place.mkdir(parents=True, exist_ok=True)
        # A folder per call: several comparisons may run at the same time.
        self.folder = Path(tempfile.mkdtemp(prefix="new-", dir=place))

    def run(self, case):
        folder = self.folder / case.name
        programs.run(self.binary, case, folder, self.folder / "cache")
        return folder

    def tidy(self):
        """Deletes the cache, and the whole folder if no run is kept for inspection."""
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        if any(self.folder.iterdir()):
            print(f"runs that differ are kept in {self.folder}")
        else:
            self.folder.rmdir()


def main():
    settings = arguments()
    try:
        commit = programs.full_commit(settings.commit)
        binary = settings.binary and programs.existing("--binary", settings.binary)
        new = settings.new and programs.existing("--new", settings.new)
        old = Old(commit, binary, Path(settings.work).resolve())
        return compare_all(old, New(new), settings)
    except Unusable as problem:
        print(f"check: {problem}", file=sys.stderr)
        return 2
    except Failed as problem:
        print(f"check: failed: {problem}", file=sys.stderr)
        return 1


def arguments():
    parser = argparse.ArgumentParser(
        prog="tools/same/check", description=__doc__,
        epilog="Exit codes: 0 all runs are the same, 1 some differ or fail, 2 bad usage.",
    )
    parser.add_argument("commit", metavar="COMMIT", help="the commit to compare with")
    parser.add_argument("--binary", metavar="OLD_TILP", help="program of COMMIT (default: built if a run is missing)")
    parser.add_argument("--new", metavar="NEW_TILP", help="program of the present tree (default: built)")
    parser.add_argument("--methods", default=METHODS, type=methods, help="default: %(default)s")
    parser.add_argument("--rounds", default=100, type=positive, help="rounds of `default`; `tiny` is run whole")
    parser.add_argument("--work", metavar="DIR", default=programs.ROOT / "target" / "same",
                        help="where the program and the runs of COMMIT are kept (default: target/same)")
    parser.add_argument("--rename", metavar="OLD=NEW", action="append", default=[], type=renamed,
                        help="a column, metric or tensor that has a new name (may be repeated)")
    parser.add_argument("--tolerant", action="store_true",
                        help="print changes of values, but count them as no failure")
    return parser.parse_args()


def methods(text):
    names = list(dict.fromkeys(text.split(",")))
    if not all(re.fullmatch(r"[a-z][a-z0-9+.-]*", name) for name in names):
        raise argparse.ArgumentTypeError(f"{text!r}, expected names of methods with commas between them")
    return names


def positive(text):
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of at least 1")
    return int(text)


def renamed(text):
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r}, expected OLD=NEW")
    return old, new


def compare_all(old, new, settings):
    """Prints one line per case; returns the exit code."""
    names = settings.methods
    cases = [Case("tiny", name, None) for name in names]
    cases += [Case("default", name, settings.rounds) for name in names]
    width = max(len(case.name) for case in cases)
    counts = {"same": 0, "differs": 0, "failed": 0}
    one_sided = {}
    try:
        for case in cases:
            verdict, text = compare_case(old, new, case, dict(settings.rename), one_sided)
            counts[verdict] += 1
            print(f"{case.name:<{width}}  {text}", flush=True)
    finally:
        new.tidy()
    for (file, side), found in one_sided.items():
        print(f"only in the {side} {file}: {', '.join(found)}")
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return int(counts["failed"] > 0 or (counts["differs"] > 0 and not settings.tolerant))


def compare_case(old, new, case, rename, one_sided):
    """Runs and compares one case; returns the verdict and its line."""
    try:
        before, after = old.run(case), new.run(case)
    except Failed as problem:
        return "failed", f"failed: {problem}"
    result = compare.folders(before, after, rename)
    for place, found in result.one_sided.items():
        known = one_sided.setdefault(place, [])
        known += [name for name in found if name not in known]
    if result.verdict == "same":
        shutil.rmtree(after)
    return result.verdict, result.line()


if __name__ == "__main__":
    sys.exit(main())
