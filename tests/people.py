"""A table of people for the tests of the program."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca.tables.reading import OtherTypeError, Table

FIT = ["--sensitive", "sex", "--n-components", "2", "--target", "rich", "--drop", "race"]


BAD, ON = "bad.csv", ["--sensitive", "sex", "--n-components", "1"]


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    frame = pd.DataFrame(rng.normal(size=(n, 4)) * [3, 2, 1, 1], columns=[*"abcd"])
    frame.loc[sex == "f", [*"abcd"]] = frame.loc[sex == "f", [*"dcba"]].to_numpy()
    frame["job"] = rng.choice(["NA", "cook", "=smith"], n)
    frame["sex"] = sex
    frame["race"] = rng.choice(["x", "y"], n)
    frame["rich"] = rng.integers(0, 2, n)
    return frame


def prepared_by_hand(frame, new):
    """The columns a, b, c, d and job of a new table, as the first is prepared."""
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [*"abcd"]),
            ("texts", OneHotEncoder(sparse_output=False), ["job"]),
        ]
    ).fit(frame)
    return columns.transform(frame), columns.transform(new)


def contents():
    return {name: Path(name).is_file() and Path(name).read_bytes() for name in os.listdir()}


def nameless_groups():
    people().assign(sex=np.where(np.arange(120) < 7, None, "f")).to_csv("bad.csv", index=False)


def read_table(path, text=(), **options):
    """The table of a file as the program reads it, as a data frame."""
    table = Table(Path(path), text=text, **options)
    return batches_of(table, table.names)[1].to_pandas(ignore_metadata=True)


def batches_of(table, columns):
    """The batches of a table, which is read again where the type of a column changes, and all."""
    while True:
        with suppress(OtherTypeError):
            batches = [*table.batches(columns)]
            return batches, pyarrow.Table.from_batches(batches)
