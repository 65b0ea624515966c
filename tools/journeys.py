"""Count the functions and files of fairpca that three common calls pass through.

Run ``python tools/journeys.py``, with Java for the last of them. ``--list`` names the functions.
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
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd

import fairpca
from fairpca import FairPCA

ROOT = Path(fairpca.__file__).parent


def passed(journey: Callable[[], Any]) -> list[tuple[str, str]]:
    """File and name of each function that a call passes through, in the order of its first use."""
    seen: dict[CodeType, None] = {}

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [
        (str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname)
        for code in seen
        if Path(code.co_filename).is_relative_to(ROOT) and not code.co_name.startswith("<")
    ]


def array_journey() -> Callable[[], Any]:
    """`FairPCA.fit` on a NumPy array with two groups."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 6)) * [3, 3, 2, 2, 1, 1], np.repeat(["a", "b"], [100, 200])
    X[:100] = X[:100, ::-1]
    return lambda: FairPCA(2).fit(X, sensitive_features=groups)


def report_journey(folder: str) -> Callable[[], Any]:
    """``fairpca report people.csv``."""
    from fairpca.cli import main

    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    people["job"] = np.tile(["cook", "smith", "clerk"], 100)
    people["sex"] = np.repeat(["f", "m"], [100, 200])
    table, page = f"{folder}/people.csv", f"{folder}/people.html"
    people.to_csv(table, index=False)
    options = ["--sensitive", "sex", "--n-components", "2", "--report", page]

    def journey() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["report", table, *options]) in (0, None)

    return journey


def spark_journey(session: Any) -> Callable[[], Any]:
    """`FairPCA.fit` on a data frame of Spark."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    people["sex"] = np.repeat(["f", "m"], [100, 200])
    frame = session.createDataFrame(people)
    return lambda: FairPCA(2).fit(frame, sensitive_features="sex")


def show(title: str, functions: list[tuple[str, str]], names: bool) -> None:
    """Print the numbers, and the functions if asked for."""
    files = dict.fromkeys(file for file, _ in functions)
    print(f"{title}: {len(functions)} functions in {len(files)} files")
    if names:
        for file, name in functions:
            print(f"    {file}: {name}")


def main() -> None:
    """Walk the journeys and print how long each is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the functions")
    names = parser.parse_args().list
    warnings.simplefilter("ignore")
    show("FairPCA.fit, NumPy array, two groups", passed(array_journey()), names)
    with tempfile.TemporaryDirectory() as folder:
        show("fairpca report people.csv", passed(report_journey(folder)), names)
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    spark = session.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    show("FairPCA.fit, data frame of Spark", passed(spark_journey(spark)), names)
    spark.stop()


if __name__ == "__main__":
    main()
