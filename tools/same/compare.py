"""Compares two run folders value by value."""

import csv
import json
import math
from array import array
from dataclasses import dataclass, field

import pyarrow
import pyarrow.parquet

FILES = ("terminals.parquet", "rounds.csv", "summary.json", "model.safetensors")
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error, pyarrow.ArrowException)


@dataclass(frozen=True)
class Difference:
    """Two values that are not the same."""

    file: str
    place: str
    old: object
    new: object
    round: float = math.inf  # files without rounds describe the end of a run

    def __str__(self):
        return f"{self.file} {self.place}: {self.old} -> {self.new}"


@dataclass
class Comparison:
    """What comparing two run folders found."""

    problems: list = field(default_factory=list)  # files that are missing or cannot be read
    differences: list = field(default_factory=list)  # the first of each file
    changes: dict = field(default_factory=dict)  # file: (largest relative change, place)
    one_sided: dict = field(default_factory=dict)  # (file, "old" or "new"): names
    success: tuple = (None, None)

    @property
    def verdict(self):
        if self.problems:
            return "failed"
        return "differs" if self.differences else "same"

    def line(self):
        if self.verdict == "same":
            return "same"
        parts = [f"failed: {problem}" for problem in self.problems]
        if self.differences:
            # The earliest round is nearest to the cause.
            first = min(self.differences, key=lambda difference: difference.round)
            changes = [f"{change:.2g} ({file} {place})" for file, (change, place) in self.changes.items()]
            parts += [f"differs: {first}", f"largest relative changes: {', '.join(changes) or 'none'}"]
            parts += [f"success_final {change_of_success(*self.success)}"]
        return "; ".join(parts)


def folders(old, new, rename):
    """Compares two run folders; `rename` maps old names of columns, metrics and tensors to new ones."""
    result = Comparison()
    compare_file = {
        "terminals.parquet": compare_terminals, "rounds.csv": compare_rounds,
        "summary.json": compare_summary, "model.safetensors": compare_model,
    }
    for file in FILES:
        absent = [side for side, folder in (("old", old), ("new", new)) if not (folder / file).is_file()]
        if absent:
            result.problems.append(f"{file} is missing in the {' and the '.join(absent)} run")
            continue
        try:
            compare_file[file](old / file, new / file, rename, result)
        except UNREADABLE as problem:
            result.problems.append(f"{file} cannot be compared: {problem}")
    return result


def compare_terminals(old, new, rename, result):
    def columns(path):
        table = pyarrow.parquet.ParquetFile(path).read()
        return {name: table.column(name).to_pylist() for name in table.column_names}

    compare_columns(old.name, columns(old), columns(new), rename, result)


def compare_rounds(old, new, rename, result):
    def columns(path):
        with path.open(newline="") as file:
            head, *rows = csv.reader(file, strict=True)
        if any(len(row) != len(head) for row in rows):
            raise ValueError(f"a row of {path} has not {len(head)} cells")
        return {name: [parsed(row[index]) for row in rows] for index, name in enumerate(head)}

    compare_columns(old.name, columns(old), columns(new), rename, result)


def compare_columns(file, old, new, rename, result):
    """Compares the columns that both tables have, row by row in the order of the files."""
    n_old, n_new = (len(next(iter(table.values()), [])) for table in (old, new))
    pairs = common(file, old, new, rename, result)
    keys = [(name, old[name]) for name in ("round", "terminal") if name in old]
    first = None
    for name, (left, right) in pairs.items():
        for row, (a, b) in enumerate(zip(left, right)):
            if equal(a, b):
                continue
            place = " ".join([f"{key} {values[row]}" for key, values in keys] + [name])
            note_change(result, file, relative_change(a, b), place)
            if first is None or row < first[0]:
                round_ = old["round"][row] if "round" in old else math.inf
                first = row, Difference(file, place, a, b, round_)
    if first is not None:
        result.differences.append(first[1])
    elif n_old != n_new:
        # Rows are missing or added at the end.
        longer, row = (old, n_new) if n_old > n_new else (new, n_old)
        round_ = longer["round"][row] if "round" in longer else math.inf
        result.differences.append(Difference(file, "number of rows", n_old, n_new, round_))


def compare_summary(old, new, rename, result):
    old, new = (json.loads(path.read_text()) for path in (old, new))
    pairs = common("summary.json", old, new, rename, result)
    result.success = old.get("success_final"), new.get("success_final")
    n_before = len(result.differences)
    for name, (left, right) in pairs.items():
        compare_metric(name, left, right, result)
    del result.differences[n_before + 1:]


def compare_metric(name, old, new, result):
    """Compares one metric; goes down into objects and lists."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, (left, right) in common("summary.json", old, new, {}, result, f"{name}.").items():
            compare_metric(f"{name}.{key}", left, right, result)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (left, right) in enumerate(zip(old, new)):
            compare_metric(f"{name}[{index}]", left, right, result)
    elif not equal(old, new):
        result.differences.append(Difference("summary.json", name, old, new))
        note_change(result, "summary.json", relative_change(old, new), name)


def compare_model(old, new, rename, result):
    """Compares tensors bit by bit. A tensor on one side only is a difference: the model is another one."""
    file = old.name
    old, new = tensors(old), tensors(new)
    unmatched = Comparison()
    pairs = common(file, old, new, rename, unmatched)
    for (_, side), names in unmatched.one_sided.items():
        present = ("present", "absent") if side == "old" else ("absent", "present")
        result.differences.append(Difference(file, names[0], *present))
        return
    first = None
    for name, (left, right) in pairs.items():
        if left == right:
            continue
        difference, change = compare_tensor(file, name, left, right)
        first = first or difference
        note_change(result, file, change, name)
    if first is not None:
        result.differences.append(first)


def tensors(path):
    """The tensors of a safetensors file: name to (type, shape, bytes)."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + length]), data[8 + length:]
    header.pop("__metadata__", None)
    found = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        if not 0 <= start <= end <= len(body):
            raise ValueError(f"{path}: tensor {name} ends after the file")
        found[name] = entry["dtype"], tuple(entry["shape"]), body[start:end]
    return found


def compare_tensor(file, name, old, new):
    """The first difference of two tensors, and the largest change relative to the old tensor's largest value."""
    if old[:2] != new[:2]:
        return Difference(file, name, f"{old[0]} {list(old[1])}", f"{new[0]} {list(new[1])}"), None
    code = {"F32": "f", "F64": "d"}.get(old[0], "B")
    left, right = array(code, old[2]), array(code, new[2])
    size = left.itemsize
    index = next(i for i in range(len(left)) if old[2][i * size:(i + 1) * size] != new[2][i * size:(i + 1) * size])
    difference = Difference(file, f"{name}[{index}]", left[index], right[index])
    scale = max(max(map(abs, left)), max(map(abs, right)))
    change = max(abs(a - b) for a, b in zip(left, right)) / scale if scale > 0 else 0.0
    return difference, change


def common(file, old, new, rename, result, prefix=""):
    """The values of every name that both sides have; notes the names that one side has."""
    # A file in which the new name does not occur may have kept the old one.
    rename = {before: after for before, after in rename.items() if after in new}
    old_as_new = {rename.get(name, name): values for name, values in old.items()}
    if len(old_as_new) < len(old):
        raise ValueError("--rename gives two old names one new name")
    sides = ("old", old_as_new, new), ("new", new, old_as_new)
    for side, here, there in sides:
        alone = [prefix + name for name in here if name not in there]
        if alone:
            result.one_sided.setdefault((file, side), []).extend(alone)
    return {name: (values, new[name]) for name, values in old_as_new.items() if name in new}


def parsed(text):
    """A cell of a CSV file as a number where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text or None


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def equal(a, b):
    """Equal to the last bit. The way a number is written (1 or 1.0) does not matter; NaN equals NaN."""
    if is_number(a) and is_number(b):
        if a != a or b != b:
            return a != a and b != b
        return a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


def relative_change(a, b):
    """|a - b| over the larger magnitude; None where a side is no finite number."""
    if not (is_number(a) and is_number(b) and math.isfinite(a) and math.isfinite(b)):
        return None
    scale = max(abs(a), abs(b))
    return abs(a - b) / scale if scale > 0 else 0.0


def note_change(result, file, change, place):
    if change is not None and (file not in result.changes or change > result.changes[file][0]):
        result.changes[file] = change, place


def change_of_success(old, new):
    if is_number(old) and is_number(new):
        return f"{old:.4g} -> {new:.4g} ({new - old:+.4g})"
    return f"{old} -> {new}"
