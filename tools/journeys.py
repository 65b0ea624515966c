"""Walk common calls: the functions and files of fairpca that they pass through.

Run ``python -m tools.journeys``, with Java for the last of them; ``--list`` names the functions.
Each call is made once before it is counted, so that what is done once in a process does not count.
Module bodies, comprehensions and lambdas do not count, nor does what runs in Spark's own processes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd

import fairpca
from fairpca import FairPCA

ROOT = Path(fairpca.__file__).parent


@dataclass(frozen=True)
class Walk:
    """What a call passed through.

    Attributes
    ----------
    names : list of (str, str)
        File and name of each function, in the order of its first use.
    switches : int
        How often one function was called after another in a different file.
    depth : int
        The most of our functions that were open at once.
    """

    names: list[tuple[str, str]]
    switches: int
    depth: int

    @property
    def functions(self) -> int:
        """How many functions."""
        return len(self.names)

    @property
    def files(self) -> int:
        """How many files."""
        return len({file for file, _ in self.names})


def counted(journey: Callable[[], Any]) -> Walk:
    """Walk a journey a second time, and count."""
    journey()
    order: list[CodeType] = []
    depths = [0]

    def is_ours(code: CodeType) -> bool:
        ours = Path(code.co_filename).is_relative_to(ROOT)
        return ours and not code.co_name.startswith("<")

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and is_ours(frame.f_code):
            order.append(frame.f_code)
            depth, outer = 0, frame
            while outer is not None:
                depth += is_ours(outer.f_code)
                outer = outer.f_back  # type: ignore[assignment]
            depths.append(depth)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    names = [
        (str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname)
        for code in dict.fromkeys(order)
    ]
    switches = sum(a.co_filename != b.co_filename for a, b in pairwise(order))
    return Walk(names, switches, max(depths))


def array_journey(criterion: str = "soft") -> Callable[[], Any]:
    """`FairPCA.fit` on a NumPy array with two groups."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1], np.repeat(["a", "b"], [100, 200])
    X[:100] = X[:100, ::-1]
    return lambda: FairPCA(2, criterion=criterion).fit(X, sensitive_features=groups)


def program_journey(command: str, folder: str | None = None) -> Callable[[], Any]:
    """``fairpca fit people.csv`` or ``fairpca report people.csv``."""
    from fairpca.cli import main

    folder = tempfile.mkdtemp() if folder is None else folder
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    people["job"] = np.tile(["cook", "smith", "clerk"], 100)
    people["sex"] = np.repeat(["f", "m"], [100, 200])
    table = f"{folder}/people.csv"
    people.to_csv(table, index=False)
    options = ["--sensitive", "sex", "--n-components", "2"]
    if command == "report":
        options += ["--force", "--report", f"{folder}/people.html"]

    def journey() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert main([command, table, *options]) in (0, None)

    return journey


def spark_journey(session: Any) -> Callable[[], Any]:
    """`FairPCA.fit` on a data frame of Spark."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    people["sex"] = np.repeat(["f", "m"], [100, 200])
    frame = session.createDataFrame(people)
    return lambda: FairPCA(2).fit(frame, sensitive_features="sex")


def show(title: str, walk: Walk, names: bool) -> None:
    """Print the numbers, and the functions if asked for."""
    print(f"{title}: {walk.functions} functions in {walk.files} files")
    if names:
        for file, name in walk.names:
            print(f"    {file}: {name}")


def main() -> None:
    """Walk the journeys and print how long each is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    names = parser.parse_args().list
    warnings.simplefilter("ignore")
    show("FairPCA.fit, NumPy array, two groups", counted(array_journey()), names)
    show('The same with criterion="minmax"', counted(array_journey("minmax")), names)
    show("fairpca fit people.csv", counted(program_journey("fit")), names)
    show("fairpca report people.csv", counted(program_journey("report")), names)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    show("FairPCA.fit, data frame of Spark", counted(spark_journey(spark)), names)
    spark.stop()


if __name__ == "__main__":
    main()
