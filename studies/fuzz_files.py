"""Load 10,000 damaged or forged files of each kind, and say what came of it.

Run ``python -m studies.fuzz_files`` to rewrite studies/fuzzed_files.md (some minutes); with a
number of files as its argument it prints the page instead.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fairpca import FairPCA, GroupMoments
from fairpca.model_file import FairModel, load_model, save_model
from fairpca.sources.checkpoints import Pass
from fairpca.tables.columns import ColumnChoice, Columns
from fairpca.tables.preparation import Preparation
from fairpca.tables.reading import TableFile
from studies.file_mutations import ATTACKS, MUTATIONS, parts_of

TARGET = Path(__file__).with_name("fuzzed_files.md")

N_MUTATIONS = 10_000

MOST_TIMES, MOST_FREE = 10, 100e6
"""What a load may take: ten times the file and 100 MB."""

CHOICE = ColumnChoice(None, ("sex", "age"), "weight")

_NOT_KEPT = ("fairpca", "arrays", "baselines", "pass")
"""Keys of a header that are no content, or are written again by other rules."""


def rows() -> tuple[Any, dict[str, Any]]:
    """Numbers and groups to make files of."""
    rng = np.random.default_rng(0)
    people = {"sex": rng.choice(["f", "m"], 120), "age": rng.choice([1, 2], 120)}
    X = rng.normal(size=(120, 5)) @ rng.normal(size=(5, 5)) + [0.0, 1e3, 0.0, -5.0, 1.0]
    return X, people


def moments() -> GroupMoments:
    """Those of the rows, with all that a file of them can have."""
    X, people = rows()
    frame = {f"column {j}": X[:, j] for j in range(5)}
    weights = np.random.default_rng(1).exponential(size=120)
    made = GroupMoments.from_rows(X, people, sample_weight=weights)
    fields = {**vars(made), "feature_names": tuple(frame), "group_names": ("sex", "age")}
    return GroupMoments(**{**fields, "n_dropped": 3})


def _written(write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        write(path)
        return path.read_bytes()


@cache
def make_model() -> bytes:
    """A model file with a preparation, and subspaces of the training rows."""
    X, people = rows()
    table = {f"column {j}": X[:, j] for j in range(5)}
    table |= {"job": np.resize(["cook", "smith", "none"], 120), **people}
    preparation = Preparation.learn(table, sensitive=["sex", "age"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # groups of random rows are alike
        fair = FairPCA(2, criterion="minmax").fit(
            preparation.apply(table), sensitive_features=people
        )
    return _written(lambda path: save_model(fair, path, preparation=preparation))


@cache
def make_checkpoint() -> bytes:
    """The checkpoint of a pass over two files."""

    def write(path: Path) -> None:
        reading = Pass(path, CHOICE, "error", False)
        features = moments().feature_names or ()
        reading.columns = Columns(features, CHOICE.sensitive, CHOICE.weight, True)
        for name in ("a.parquet", "b.parquet"):
            reading.add(TableFile(Path(name), 1000, 17), moments())
        reading.write()

    return _written(write)


def _save_again(loaded: Any) -> bytes:
    """What is written of what was loaded."""
    if isinstance(loaded, GroupMoments):
        return loaded.to_bytes()
    if isinstance(loaded, FairModel):
        made = _written(
            lambda path: save_model(loaded.fair_pca, path, preparation=loaded.preparation)
        )
        str(loaded.fair_pca.group_table_)
        loaded.fair_pca.transform(np.zeros((2, loaded.fair_pca.n_features_in_)))
        return made

    def write(path: Path) -> None:
        loaded._path = path
        loaded.write()

    return _written(write)


def content(data: bytes) -> dict[str, Any]:
    """What a file says, as json and NumPy read it, in an order that does not matter."""
    _, header, arrays = parts_of(data)
    reading = header.get("pass") or {}
    arrays = {name: array + array.dtype.type(0) for name, array in arrays.items()}  # no -0.0
    said: dict[str, Any] = {k: v for k, v in header.items() if k not in _NOT_KEPT}
    if "labels" in header:  # moments, whose groups may be in another order
        names = sorted(arrays)
        said["groups"] = sorted(
            (json.dumps(label), [arrays[name][i].tolist() for name in names])
            for i, label in enumerate(header["labels"])
        )
        said |= {"labels": None, "names": names}
        said.setdefault("n_dropped", 0)
        said.setdefault("group_names", None)
        said |= {"files": reading.get("files")}
        return said
    return said | {name: array.tolist() for name, array in arrays.items()}


def agree(found: Any, expected: Any) -> bool:
    """Whether two parts of files say the same.

    What an object does not have, as in older files, is what it is by default.
    """
    if isinstance(found, dict) and isinstance(expected, dict):
        return all(agree(found[key], expected[key]) for key in found.keys() & expected.keys())
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(agree(*pair) for pair in pairs)
    if isinstance(found, float) and type(expected) in (int, float):
        return found == expected or repr(found) == repr(float(expected))  # not a number
    return type(found) is type(expected) and bool(found == expected)


def _load_pass(path: Path) -> Pass:
    return Pass(path, CHOICE, "error", False)


@dataclass(frozen=True)
class Kind:
    """A kind of file: how one is made and loaded."""

    make: Callable[[], bytes]
    load: Callable[[Path], Any]


KINDS = {
    "model file": Kind(make_model, load_model),
    "file of moments": Kind(lambda: moments().to_bytes(), GroupMoments.load),
    "checkpoint": Kind(make_checkpoint, _load_pass),
    "bytes that were sent": Kind(
        lambda: moments().to_bytes(), lambda path: GroupMoments.from_bytes(path.read_bytes())
    ),
}


@dataclass
class Outcome:
    """What came of many loads."""

    refused: int = 0
    same: int = 0
    other: int = 0
    words: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    longest: float = 0.0
    peak: float = 0.0
    """The most memory of a load, in bytes."""


def try_load(kind: Kind, data: bytes, whole: dict[str, Any], path: Path, outcome: Outcome) -> None:
    """Load a file, and note what came of it; a fault is what no load may do."""
    path.write_bytes(data)
    tracemalloc.reset_peak()
    before, start = tracemalloc.get_traced_memory()[0], time.perf_counter()
    loaded, message = None, ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = kind.load(path)
    except ValueError as error:
        message = str(error)
    except Exception as error:  # what is looked for
        outcome.faults.append(f"{type(error).__name__}: {error}")
        return
    outcome.longest = max(outcome.longest, time.perf_counter() - start)
    peak = tracemalloc.get_traced_memory()[1] - before
    outcome.peak = max(outcome.peak, peak)
    if peak > MOST_TIMES * len(data) + MOST_FREE:
        outcome.faults.append(f"took {peak / 1e6:.0f} MB for {len(data) / 1e6:.1f} MB")
    if message:
        outcome.refused += 1
        shown = message.replace(repr(str(path)), "FILE").replace("What was sent", "FILE")
        outcome.words[shown] += 1
        if "\n" in message or not message.endswith(".") or len(message) > 400 + len(str(path)):
            outcome.faults.append(f"not one sentence: {message[:500]}")
        return
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = content(_save_again(loaded))
        expected = content(data)
    except Exception as error:  # what was loaded must be of use
        outcome.faults.append(f"loaded, but then {type(error).__name__}: {error}")
        return
    lost = {key for key in found if not agree(found[key], expected.get(key))}
    if lost:
        outcome.faults.append(f"altered: {sorted(lost)}")
    elif found == whole:
        outcome.same += 1
    else:
        outcome.other += 1


def fuzz(name: str, n: int, seed: int = 0) -> dict[str, Outcome]:
    """The outcomes of n mutated files of a kind, by mutation."""
    kind, rng = KINDS[name], np.random.default_rng(seed)
    data = kind.make()
    other = KINDS["model file" if name != "model file" else "checkpoint"].make()
    whole = content(data)
    outcomes = {mutation: Outcome() for mutation in MUTATIONS}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a file"
        started = not tracemalloc.is_tracing()
        if started:
            tracemalloc.start()
        try:
            for i in range(n):
                mutation = list(MUTATIONS)[i % len(MUTATIONS)]
                mutated = MUTATIONS[mutation](data, rng, other)
                try_load(kind, mutated, whole, path, outcomes[mutation])
        finally:
            if started:
                tracemalloc.stop()
    return outcomes


def attack(name: str, attacked: str) -> Outcome:
    """The outcome of one large attack on a kind of file."""
    kind, outcome = KINDS[name], Outcome()
    data = kind.make()
    forged = ATTACKS[attacked](data)
    with tempfile.TemporaryDirectory() as folder:
        tracemalloc.start()
        try:
            try_load(kind, forged, content(data), Path(folder) / "a file", outcome)
        finally:
            tracemalloc.stop()
    return outcome


HEAD = """# Files under attack

Model files, files of moments, checkpoints of passes over files and moments that were sent as bytes
are read as if whoever wrote them meant harm. Here {n:,} damaged or forged files of each kind are
loaded: half of them damaged at random, and half by someone who knows the format and makes the
checksum fit. A fault would be any of these:

- an exception other than ValueError, a warning, or a message that is not one sentence;
- content that was altered: what was loaded is saved again, and both files, as `json` and NumPy read
  them, must say the same;
- a model whose table cannot be printed or that cannot transform rows;
- a peak of memory above ten times the file plus 100 MB.

*As it was* are files in which what was edited is not read, or is what it was.
*Another file* are those that hold other numbers or names that are as possible as the first ones: a
checksum guards against damage, not against someone who computes it anew. Made by
`python -m studies.fuzz_files`.

"""

ATTACKED = """
## Files that are made to take memory

{n} attacks, each on every kind of file; all are refused. *Peak* is the largest of the four, as
`tracemalloc` measures it.

| attack | file | peak | seconds | what the user is told |
|---|---|---|---|---|
"""


def _table(outcomes: dict[str, Outcome]) -> list[str]:
    lines = [
        "| what was done | files | refused | as it was | another file | faults | slowest load |",
        "|---|---|---|---|---|---|---|",
    ]
    for mutation, o in outcomes.items():
        faults = len(o.faults)
        cells = [o.refused + o.same + o.other + faults, o.refused, o.same, o.other, faults]
        shown = " | ".join(f"{cell:,}" for cell in cells)
        lines.append(f"| {mutation} | {shown} | {o.longest:.2f} s |")
    return lines


def main() -> None:
    """Write the page; a number as the argument tries fewer files, and prints it."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_MUTATIONS
    page, faults = HEAD.format(n=n), []
    for name, kind in KINDS.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        outcomes = fuzz(name, n)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        peak = max(outcome.peak for outcome in outcomes.values())
        words = {text for outcome in outcomes.values() for text in outcome.words}
        page += f"## {name[0].upper()}{name[1:]}\n\n" + "\n".join(_table(outcomes))
        page += (
            f"\n\nThe file has {len(kind.make()):,} bytes. No load took more than "
            f"{peak / 1e6:.1f} MB,\nand the process grew by {grown / 1e3:.0f} MB. "
            f"{len(words):,} different sentences were said.\n\n"
        )
        faults += [fault for outcome in outcomes.values() for fault in outcome.faults]
    page = page.rstrip("\n") + "\n" + ATTACKED.format(n=len(ATTACKS))
    for attacked in ATTACKS:
        tried = [attack(name, attacked) for name in KINDS]
        faults += [fault for outcome in tried for fault in outcome.faults]
        assert all(outcome.refused for outcome in tried), f"{attacked}: {faults}"
        ((said, _),) = sum((outcome.words for outcome in tried), Counter()).most_common(1)
        size = len(ATTACKS[attacked](KINDS["model file"].make()))
        peak, longest = (max(getattr(o, what) for o in tried) for what in ("peak", "longest"))
        page += f"| {attacked} | {size / 1e6:.2f} MB | {peak / 1e6:.1f} MB | {longest:.2f} |"
        page += f" {said.replace('FILE', '…')} |\n"
    for fault, count in Counter(faults).most_common():
        print(count, fault[:300])
    if n == N_MUTATIONS:
        TARGET.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
