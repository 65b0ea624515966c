"""Spark, classic and Connect: the fit on a cluster is the fit on all rows."""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.sources import read_moments, transform_distributed

from clusters import NAMES, people
from same_fit import assert_same_choice, assert_same_fit
from texts import refused, warned

# Of Spark itself: what it says of pandas 3 and of settings that a running server does not take, and
# the sockets to its Java side that version 4.0 leaves open after each collect().
pytestmark = [
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Failed to set spark:UserWarning"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
    pytest.mark.long,
]

REQUIRED = "FAIRPCA_REQUIRE_JAVA"
FRAME = people()
AGE = FRAME["age"]
CLASSIC = pytest.param("classic", marks=pytest.mark.contract)
CONNECT = pytest.param("connect", marks=pytest.mark.contract)


@pytest.fixture(scope="module", params=["classic", "connect"])
def spark(request):
    """A session with two cores, of each kind."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        said = "no Java found: nothing was run on Spark"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{said}, and {REQUIRED} is set")
        pytest.skip(said)
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        # For a minute, quick compilation is worth more than quick code.
        patch.setenv("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        builder = SparkSession.builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.python.daemon.module", "spark_daemon")
        if request.param == "classic":
            builder = builder.master("local[2]")
        else:
            patch.setenv("SPARK_TESTING", "1")  # a free port: another process may test, too
            builder = builder.remote("local[2]")
        session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The people as a Parquet file."""
    path = tmp_path_factory.mktemp("people")
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pandas(FRAME, preserve_index=False), path / "people.parquet"
    )
    return str(path)


@pytest.fixture
def frame(spark, folder):
    return spark.read.parquet(folder)


@pytest.mark.parametrize("spark", [CLASSIC, "connect"], indirect=True)
def test_the_fit_is_that_on_all_rows(frame):
    reference = FairPCA(2, criterion="minmax").fit(
        FRAME[NAMES], sensitive_features=AGE, sample_weight=FRAME["w"]
    )
    few = frame.repartition(3)
    fair = FairPCA(2, criterion="minmax").fit(few, sensitive_features="age", sample_weight="w")
    assert_same_fit(fair, reference)
    assert fair.feature_names_in_.tolist() == NAMES
    choices = {"sensitive_features": "age", "sample_weight": "w"}
    fair = FairPCA(2, criterion="soft").fit(few, **choices)
    reference = FairPCA(2, criterion="soft").fit(
        FRAME[NAMES], sensitive_features=AGE, sample_weight=FRAME["w"]
    )
    assert_same_choice(fair, reference)
    options = {"criterion": "minmax", "groups": "marginals"}
    people = frame.select(*(f"`{name.replace('`', '``')}`" for name in NAMES), "age", "sex")
    fair = FairPCA(2, **options).fit(people, sensitive_features=["age", "sex"])
    reference = FairPCA(2, **options).fit(FRAME[NAMES], sensitive_features=FRAME[["age", "sex"]])
    assert_same_fit(fair, reference)
    assert fair.sensitive_names_ == ("age", "sex")


def test_many_partitions_are_merged_before_the_driver_gets_them(frame, monkeypatch):
    got = []
    collect = type(frame).collect

    def recording(frame):
        got.extend(collect(frame))
        return got

    monkeypatch.setattr(type(frame), "collect", recording)
    # Sorted by a hash of the number: most partitions are without rows, or without some group.
    spread = frame.where("id <> 'row 7'").repartition(40, "age", "sex")
    moments = read_moments(spread, features=NAMES, sensitive_features=["age", "sex"])
    some = FRAME[FRAME["id"] != "row 7"]
    reference = GroupMoments.from_rows(some[NAMES], some[["age", "sex"]])
    assert moments.labels == reference.labels
    assert moments.feature_names == tuple(NAMES)
    assert moments.count.tolist() == reference.count.tolist()
    np.testing.assert_allclose(moments.mean, reference.mean, rtol=1e-12)
    np.testing.assert_allclose(moments.scatter, reference.scatter, rtol=1e-9, atol=1e-9)
    assert len(got) <= 2  # as many as there are cores
    assert all(len(row.moments) <= 6 * 8 * (6 * 6 + 6 + 2) + 2500 for row in got)


@pytest.mark.parametrize("spark", ["classic", CONNECT], indirect=True)
def test_transform_is_lazy_and_keeps_what_it_is_told(frame):
    fair = FairPCA(2, whiten=True, criterion="minmax").fit(FRAME[NAMES], sensitive_features=AGE)
    reduced = transform_distributed(fair, frame.repartition(3), keep=["id", "c"])
    assert reduced.columns == ["id", "c", "fairpca0", "fairpca1"]
    rows = {row[0]: row[1:] for row in reduced.collect()}
    found = np.array([rows[name] for name in FRAME["id"]])
    np.testing.assert_array_equal(found[:, 0], FRAME["c"])
    np.testing.assert_allclose(found[:, 1:], fair.transform(FRAME[NAMES]), atol=1e-9)
    assert type(reduced) is type(frame)
    assert fair.set_output(transform="pandas").transform(frame).columns == ["fairpca0", "fairpca1"]
    # A column that cannot be computed: nothing is wrong until its rows are asked for.
    deadly = frame.withColumns({"c": frame["c"] + frame["id"].cast("double")})
    later = fair.transform(deadly)
    with refused(Exception, "CAST_INVALID_INPUT"):
        later.collect()


def test_refusals_of_rows_are_one_sentence(frame):
    holes = frame.selectExpr("c", "if(c > 101, null, e) as e", "age").coalesce(1)
    row = int(np.argmax(FRAME["c"].to_numpy() > 101)) + 1
    with refused(ValueError, "Partition 0", "'e'", "missing", f"row {row}"):
        FairPCA(1, criterion="minmax").fit(holes, sensitive_features="age")
    labels = frame.selectExpr("c", "e", "if(sex = 'f', null, age) as age")
    with refused(ValueError, "Partition", "sensitive_features", "missing"):
        read_moments(labels, sensitive_features="age")
    moments = read_moments(labels, sensitive_features="age", missing_labels="group")
    assert moments.labels == ("middle", "old", "young", "(missing)")
    with warned(FairnessWarning, "of 1,200", "left out"):
        moments = read_moments(labels, sensitive_features="age", missing_labels="drop")
    assert moments.count.sum() == (FRAME["sex"] == "m").sum()
    assert moments.group_names == ("age",)
    with refused(ValueError, "no rows", "positive weight"):
        read_moments(frame.where("c > 1e9"), features=["c"])


@pytest.mark.contract
def test_refusals_before_any_work(frame, monkeypatch):
    monkeypatch.setattr(type(frame), "collect", lambda _: pytest.fail("something was computed"))
    fair = FairPCA(2, groups=None).fit(FRAME[NAMES])
    nameless = FairPCA(2, groups=None).fit(FRAME[NAMES].to_numpy())
    for work, words in (
        (
            lambda: FairPCA(11, criterion="minmax").fit(frame),
            "n_components=11 n_features=10",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(frame, sensitive_features="agee"),
            "no column 'agee'",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(frame, sensitive_features=AGE),
            "names of columns",
        ),
        (lambda: read_moments(frame, features=["c", "age"]), "no numbers 'age' (string)"),
        (lambda: transform_distributed(fair, FRAME), "DataFrame"),
        (lambda: read_moments(frame, missing_labels="no"), "missing_labels"),
        (lambda: transform_distributed(fair, frame, keep="idd"), "no column 'idd'"),
        (lambda: fair.transform(frame.drop("c")), "no column 'c'"),
        (
            lambda: transform_distributed(
                fair, frame.withColumnRenamed("id", "FairPCA1"), keep="FairPCA1"
            ),
            "names reduced 'fairpca1'",
        ),
        (lambda: nameless.transform(frame), "without names"),
        (lambda: fair.score(frame), "DataFrame of Spark"),
    ):
        with refused((ValueError, TypeError), *words.split()):
            work()


def test_the_example_of_the_page_runs(spark, folder):
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
    *_, example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope = {"spark": spark}
    exec(example.replace("people/", folder), scope)
    assert scope["with_ids"].columns == ["id", "fairpca0", "fairpca1"]
    assert scope["fair"].certificate_.status == "optimal"
