"""The steps of the walk-through, and the files that a reader of the documents would write for them."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

TASKS = ["push", "bin", "drawer-open", "drawer-close", "button", "push", "push", "button", "bin", "drawer-open"]


@dataclass(frozen=True)
class Step:
    """What is done, and the page that says how."""

    name: str
    title: str
    page: str
    command: str
    # What the page must contain for a reader to come to this command.
    words: tuple[str, ...]
    # A pattern in the output.
    expected: str
    files: tuple[str, ...] = ()
    shows_files: bool = True
    # What is done before without being timed.
    prepare: str = ""
    # Patterns of files that must be there afterwards.
    makes: tuple[str, ...] = ()
    # The folder below the empty one.
    place: str = "."
    # Lines of the output in the page.
    lines: int = 14
    note: str = ""


def gains(_: Path) -> str:
    """Forty rounds of measured gains of twelve robots."""
    draw = random.Random(7)
    means = [draw.uniform(-104.0, -82.0) for _ in range(12)]
    rows = [",".join(f"{draw.gauss(mean, 1.5):.1f}" for mean in means) for _ in range(40)]
    return "\n".join([",".join(f"robot {n}" for n in range(1, 13)), *rows]) + "\n"


def hall(_: Path) -> str:
    """A scenario with twelve listed robots."""
    text = 'extends = "tiny"\nname = "hall"\n\n[cell]\nn_terminals = 12\ntrace = "gains.csv"\n'
    for n in range(12):
        text += f'\n[[terminals]]\nname = "robot {n + 1}"\n'
        text += f'task = "{TASKS[n]}"\n' if n < len(TASKS) else ""
        text += "clock_hz = 1.2e9\ndemonstrations = 8\n" if n == 0 else ""
    return text


def manifest(_: Path) -> str:
    """A project with one dependency."""
    package = '[package]\nname = "mine"\nversion = "0.1.0"\nedition = "2024"\n\n'
    return package + '[dependencies]\ntilp = { path = "PATH/crates/tilp" }\n'


def example(name: str) -> Callable[[Path], str]:
    """An example of the library."""
    return lambda root: (root / "crates/tilp/examples" / name).read_text()


FILES: dict[str, Callable[[Path], str]] = {
    "gains.csv": gains,
    "hall.toml": hall,
    "Cargo.toml": lambda root: manifest(root).replace("PATH", str(root)),
    "src/own_method.rs": example("own_method.rs"),
    "src/main.rs": example("compare_own_method.rs"),
}

EDIT = "python3 -c \"import json; o = json.load(open('observation.json')); o['terminals'][0]['gain_db'] = -110.0; json.dump(o, open('mine.json', 'w'))\""
OWN = "docs/howto/own-scenario.md"
RUN = "docs/howto/run.md"
COMPARE = "docs/howto/compare.md"

STEPS = [
    Step("first-run", "a first run", "README.md", "tilp run tiny", ("run tiny",), r"results in runs/tiny-tilp-0",
         note="`tiny` has six robots and 20 rounds: it shows the files, not learning."),
    Step("first-page", "a page of it", RUN, "tilp report runs/tiny-tilp-0", ("tilp report",), r"page in .*report\.html",
         makes=("runs/tiny-tilp-0/report/views.html",)),
    Step("quick-table", "the main table, quick", COMPARE, "tilp compare --quick", ("tilp compare --quick",), r"(?s)tilp.*deficit.*results in", lines=18),
    Step("whole-run", "a whole run", "README.md", "tilp run", ("run --release -- run  ",), r"results in runs/default-tilp-0"),
    Step("whole-page", "a page of the whole run", RUN, "tilp report runs/default-tilp-0", ("tilp report",), r"page in",
         makes=("runs/default-tilp-0/report/views.html",)),
    Step("own-scenario", "a scenario with twelve listed robots and measured gains", OWN, "tilp scenario check hall.toml",
         ("tilp scenario check", "[[terminals]]", "`clock_hz`", "`demonstrations`", "trace = \"gains.csv\""), r"hall.toml is sound",
         files=("hall.toml", "gains.csv")),
    Step("own-run", "a run of it", OWN, "tilp run hall.toml", ("tilp run my-cell.toml",), r"results in runs/hall-tilp-0"),
    Step("own-table", "a table of three methods on it", COMPARE, "tilp compare hall.toml --methods tilp,deficit,asfl+guard --seeds 0..3",
         ("--methods tilp,deficit,asfl+guard --seeds 0..3",), r"(?s)tilp.*deficit.*asfl\+guard.*results in"),
    Step("figures", "figures for a paper", COMPARE, "tilp report studies/compare-hall --width 3.5in", ("--width 3.5in",), r"results in", lines=3,
         makes=("studies/compare-hall/paper/pareto*.svg", "studies/compare-hall/paper/*.png", "studies/compare-hall/paper/*.pdf", "studies/compare-hall/paper/*.csv")),
    Step("channel", "its channel", "docs/channels.md", "tilp channel hall.toml --out hall-channel", ("tilp channel",), r"hall-channel",
         makes=("hall-channel/*.svg",)),
    Step("twin", "forecasts against measurements", RUN, "tilp twin runs/hall-tilp-0", ("tilp twin",), r"delay"),
    Step("verify", "a check of the run", "docs/howto/verify.md", "tilp verify runs/hall-tilp-0 --rerun", ("tilp verify", "--rerun"), r"byte for byte"),
    Step("observation", "an observation to start from", "docs/howto/plan.md",
         "tilp plan --example hall.toml > observation.json", ("tilp plan --example tiny > observation.json",), r"^$", makes=("observation.json",)),
    Step("plan", "a plan for an observation of one's own", "docs/howto/plan.md", "tilp plan hall.toml < mine.json",
         ("tilp plan tiny < observation.json",), r"round 1: \d+ of 12 terminals", prepare=EDIT,
         note="`mine.json` is `observation.json` with a gain of -110 dB for the first terminal."),
    Step("branch", "the same run with another deadline from round 10 on", "docs/howto/dash.md",
         "tilp branch runs/hall-tilp-0 --round 10 --set limits.deadline_s=3", ("tilp branch", "--set limits.deadline_s=3"), r"hall-tilp-0-branch-10"),
    Step("build", "a method of one's own in Rust: building it", "docs/own-method.md", "cargo build --release --quiet",
         ("src/own_method.rs", "src/main.rs", "tilp = { path = \"PATH/crates/tilp\" }"), r"^$",
         files=("Cargo.toml", "src/own_method.rs", "src/main.rs"), shows_files=False, place="mine", makes=("target/release/mine",),
         note="`src/own_method.rs` and `src/main.rs` are the two examples of the library; `Cargo.toml` has the one dependency."),
    Step("own-method", "a method of one's own in a table", "docs/own-method.md", "cargo run --release --quiet", ("cargo run --release",),
         r"(?s)turns-3.*deficit", place="mine"),
]
