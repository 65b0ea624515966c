"""Dask: the fit on a cluster is the fit on all rows, and nothing but moments leaves it."""

import os
import pickle
import re
import signal
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.sources import read_moments, transform_distributed

from clusters import NAMES, people
from same_fit import assert_same_choice, assert_same_fit
from texts import refused, warned

# Dask's own word on tests that use threads though the cluster of others is still there.
pytestmark = [
    # The rows have a name and another sensitive column, which are no features.
    pytest.mark.filterwarnings("ignore:Columns without numbers are left out"),
    pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler:UserWarning"),
]

FRAME = people()
X = FRAME[NAMES].to_numpy()
AGE = FRAME["age"].to_numpy()


@pytest.fixture(scope="module")
def client():
    """Two processes of workers."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def threads():
    """Threads of this process, whether there is a cluster or not."""
    with dask.config.set(scheduler="threads"):
        yield


@pytest.fixture
def nothing_computed():
    """A scheduler that must not be called."""

    def refuse(*_, **__):
        raise AssertionError("something was computed")

    with dask.config.set(scheduler=refuse):
        yield


class Sizes(SchedulerPlugin):
    """The size of the result of each task."""

    name = "sizes"

    def __init__(self):
        self.of = {}

    def transition(self, key, start, finish, *_, **kwargs):
        if start == "processing" and finish == "memory":
            self.of[str(key)] = kwargs["nbytes"]


def sizes_of_results(client, work):
    """What some work gives, and the sizes of the results of all tasks that it takes."""
    client.register_plugin(Sizes())
    result = work()
    of = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.plugins["sizes"].of)
    client.unregister_scheduler_plugin("sizes")
    return result, of


def spread(n_partitions=7):
    return dd.from_pandas(FRAME, npartitions=n_partitions)


@pytest.mark.parametrize("chunks", [(170, 6), (170, 4), (1200, 6), (1, 6)])
def test_arrays_in_any_chunks(chunks, threads):
    n = 60 if chunks[0] == 1 else 1200
    rows = slice(None, None, 1200 // n)
    reference = FairPCA(2, criterion="minmax").fit(X[rows], sensitive_features=AGE[rows])
    fair = FairPCA(2, criterion="minmax").fit(
        da.from_array(X[rows], chunks=chunks),
        sensitive_features=da.from_array(AGE[rows], chunks=500),
    )
    assert_same_fit(fair, reference)
    assert not hasattr(fair, "feature_names_in_")


@pytest.mark.contract
def test_a_cluster_gives_the_fit_on_all_rows(client):
    frame = spread()
    reference = FairPCA(2, criterion="minmax").fit(
        FRAME[NAMES], sensitive_features=AGE, sample_weight=FRAME["w"]
    )
    named = FairPCA(2, criterion="minmax").fit(
        frame.drop(columns="sex"), sensitive_features=["age"], sample_weight="w"
    )
    moments = read_moments(frame, features=NAMES, sensitive_features="age", sample_weight="w")
    for fair in (named, FairPCA(2, criterion="minmax").fit_moments(moments)):
        assert_same_fit(fair, reference)
        assert fair.feature_names_in_.tolist() == NAMES


def test_folds_are_those_of_all_rows(client):
    frame = spread()
    reference = FairPCA(2, criterion="soft").fit(
        FRAME[NAMES], sensitive_features=AGE, sample_weight=FRAME["w"]
    )
    fair = FairPCA(2, criterion="soft").fit(frame, sensitive_features="age", sample_weight="w")
    assert_same_choice(fair, reference)
    array = FairPCA(2, criterion="soft").fit(
        da.from_array(X, chunks=(37, 2)),
        sensitive_features=da.from_array(AGE, chunks=37),
        sample_weight=da.from_array(FRAME["w"].to_numpy(), chunks=37),
    )
    assert_same_choice(array, reference)


@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame")  # in Dask, of pandas 3.1
def test_only_moments_come_from_any_task_and_a_file_is_read_once(client, tmp_path):
    d, n = 20, 40_000
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"x{i}" for i in range(d)])
    table["g"] = np.arange(n) % 2
    dd.from_pandas(table, npartitions=10).to_parquet(tmp_path)
    frame = dd.read_parquet(tmp_path, split_row_groups=True)
    features = [f"x{i}" for i in range(d)]
    fair, sizes = sizes_of_results(
        client,
        lambda: FairPCA(3, criterion="minmax").fit(frame, sensitive_features="g"),
    )
    assert_same_fit(
        fair, FairPCA(3, criterion="minmax").fit(table[features], sensitive_features=table["g"])
    )
    moments = 2 * 8 * (d * d + d + 2)
    partition = n // 10 * d * 8
    assert partition > 50 * moments
    assert moments <= max(sizes.values()) < moments + 1000
    # Ten partitions, each read and summed in one task, eight and two of them merged, and those two.
    assert len(sizes) == 10 + 2 + 1


def test_the_client_gets_the_moments_of_arrays_alone(client, monkeypatch):
    d = 20
    rows = da.random.default_rng(0).normal(size=(40_000, d), chunks=(4_000, d))
    groups = (rows[:, 0] > 0.5).astype(int)
    gathered = []
    gather = Client.gather

    def recording(self, *args, **kwargs):
        gathered.append(gather(self, *args, **kwargs))
        return gathered[-1]

    monkeypatch.setattr(Client, "gather", recording)
    fair, sizes = sizes_of_results(
        client, lambda: FairPCA(3, criterion="minmax").fit(rows, sensitive_features=groups)
    )
    (got,) = gathered
    assert len(pickle.dumps(got)) < 2 * 8 * (d * d + d + 2) + 1000
    merges = [size for name, size in sizes.items() if "merged" in name]
    assert len(merges) == 2 + 1
    assert max(merges) < 2 * 8 * (d * d + d + 2) + 1000
    assert fair.group_table_.count.sum() == 40_000


def test_a_worker_that_is_killed_changes_nothing(client, tmp_path):
    marker = str(tmp_path / "killed")
    before = set(client.run(os.getpid).values())

    def kill_once(block, block_id=None):
        if block_id[0] == 5:
            try:
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return block
            with open(marker, "w") as file:
                file.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = da.from_array(X, chunks=(150, 6)).map_blocks(kill_once, dtype=float, meta=X[:0])
    fair = FairPCA(2, criterion="minmax").fit(
        rows, sensitive_features=da.from_array(AGE, chunks=150)
    )
    with open(marker) as file:
        assert int(file.read()) in before
    assert_same_fit(fair, FairPCA(2, criterion="minmax").fit(X, sensitive_features=AGE))
    client.wait_for_workers(2, timeout=60)
    assert set(client.run(os.getpid).values()) != before


@pytest.mark.contract
def test_a_refusal_on_a_worker_is_one_sentence_here(client):
    broken = X.copy()
    broken[700, 2] = np.nan
    with refused(ValueError, "partitions", "NaN"):
        FairPCA(2, criterion="minmax").fit(da.from_array(broken, chunks=(150, 6)))


def test_lengths_that_are_not_known_and_partitions_without_rows(threads):
    rows, groups = da.from_array(X, chunks=(100, 4)), da.from_array(AGE, chunks=100)
    keep = da.from_array((np.arange(1200) >= 250) & (np.arange(1200) % 3 > 0), chunks=100)
    kept = np.asarray(keep)
    reference = FairPCA(2, criterion="minmax").fit(X[kept], sensitive_features=AGE[kept])
    some = rows[keep]
    assert np.isnan(some.shape[0])
    fair = FairPCA(2, criterion="minmax").fit(some, sensitive_features=groups[keep])
    assert_same_fit(fair, reference)
    reduced = fair.transform(some)
    assert reduced.numblocks == (12, 1)
    np.testing.assert_allclose(reduced.compute(), reference.transform(X[kept]), atol=1e-9)
    frame = spread(12)
    frame = frame[frame["id"].isin(FRAME["id"][kept])]
    assert_same_fit(
        FairPCA(2, criterion="minmax").fit(frame[[*NAMES, "age"]], sensitive_features="age"),
        reference,
    )
    assert len(FairPCA(2, groups=None).fit_transform(frame[NAMES]).compute()) == kept.sum()


@pytest.mark.parametrize("known", [False, True])
def test_categories_in_frames(known, threads):
    frame = FRAME.assign(age=pd.Categorical(AGE, ["young", "never", "old", "middle"]))
    lazy = dd.from_pandas(frame, npartitions=5)
    if not known:
        lazy["age"] = lazy["age"].cat.as_unknown()
    reference = FairPCA(2, criterion="minmax").fit(frame[NAMES], sensitive_features=frame["age"])
    assert_same_fit(
        FairPCA(2, criterion="minmax").fit(lazy[[*NAMES, "age"]], sensitive_features="age"),
        reference,
    )


def test_intersections(threads):
    both = FRAME[["age", "sex"]]
    reference = GroupMoments.from_rows(X, both)
    chunks = da.from_array(both.to_numpy(dtype=object), chunks=(170, 1))
    for moments in (
        read_moments(lazy_rows(), sensitive_features=chunks),
        read_moments(spread(), features=NAMES, sensitive_features=["age", "sex"]),
    ):
        assert moments.labels == reference.labels
        assert moments.count.tolist() == reference.count.tolist()
        np.testing.assert_allclose(moments.mean, reference.mean, rtol=1e-12)
        np.testing.assert_allclose(moments.scatter, reference.scatter, rtol=1e-9, atol=1e-9)


def test_missing_labels(threads):
    frame = FRAME.copy()
    frame.loc[::50, "age"] = None
    lazy = dd.from_pandas(frame, npartitions=5)
    with refused(ValueError, "partitions", "sensitive_features", "missing"):
        FairPCA(2, criterion="minmax").fit(lazy[[*NAMES, "age"]], sensitive_features="age")
    fair = FairPCA(2, missing_labels="group", criterion="minmax")
    reference = FairPCA(2, missing_labels="group", criterion="minmax").fit(
        frame[NAMES], sensitive_features=frame["age"]
    )
    assert_same_fit(fair.fit(lazy[[*NAMES, "age"]], sensitive_features="age"), reference)
    assert fair.group_table_.labels[-1] == "(missing)"
    some = frame["age"].notna()
    reference = FairPCA(2, criterion="minmax").fit(
        frame.loc[some, NAMES], sensitive_features=frame.loc[some, "age"]
    )
    fair = FairPCA(2, missing_labels="drop", criterion="minmax")
    with warned(FairnessWarning, "24 of 1,200", "left out") as caught:
        fair.fit(lazy[[*NAMES, "age"]], sensitive_features="age")
    assert ["rows are left out" in str(each.message) for each in caught].count(True) == 1
    assert fair.group_table_.labels == ("middle", "old", "young")
    np.testing.assert_allclose(fair.group_table_.loss, reference.group_table_.loss, rtol=1e-8)
    frame["age"] = None
    with refused(ValueError, "positive weight", "label"):
        fair.fit(dd.from_pandas(frame, npartitions=5), sensitive_features="age")


def test_names_and_marginals(threads):
    order = ["young", "middle", "old"]
    frame = FRAME.assign(age=pd.Categorical(AGE, order, ordered=True))
    lazy = dd.from_pandas(frame, npartitions=5)
    moments = read_moments(lazy, features=NAMES, sensitive_features=["age", "sex"])
    assert moments.group_names == ("age", "sex")
    assert [label[0] for label in moments.labels[::2]] == sorted(order)
    options = {"criterion": "minmax", "groups": "marginals"}
    fair = FairPCA(2, **options).fit(
        lazy[[*NAMES, "age", "sex"]], sensitive_features=["age", "sex"]
    )
    expected = FairPCA(2, **options).fit(
        frame[[*NAMES, "age", "sex"]], sensitive_features=["age", "sex"]
    )
    assert_same_fit(fair, expected)
    assert fair.group_table_.to_dict()["group"][:3] == ["age=middle", "age=old", "age=young"]
    np.testing.assert_allclose(
        fair.transform(frame[[*NAMES, "age"]]), expected.transform(frame[NAMES])
    )


def test_numeric_groups_can_stay_among_the_features(threads):
    frame = FRAME[NAMES].assign(old=(AGE == "old").astype(float))
    lazy = dd.from_pandas(frame, npartitions=5)
    fair = FairPCA(2, keep_sensitive=True, criterion="minmax").fit(lazy, sensitive_features="old")
    assert fair.feature_names_in_.tolist() == [*NAMES, "old"]
    assert FairPCA(2, criterion="minmax").fit(lazy, sensitive_features="old").n_features_in_ == 6


def test_without_groups_it_is_ordinary_pca(threads):
    assert_same_fit(FairPCA(2, groups=None).fit(lazy_rows()), FairPCA(2, groups=None).fit(X))


@pytest.mark.parametrize("whiten", [False, True])
def test_transform_of_arrays_is_lazy_and_keeps_chunks(nothing_computed, whiten):
    fair = FairPCA(2, whiten=whiten, criterion="minmax").fit(X, sensitive_features=AGE)
    for dtype in (np.float64, np.float32):
        rows = da.from_array(X.astype(dtype), chunks=(170, 4))
        reduced = fair.transform(rows)
        assert reduced.chunks == (rows.chunks[0], (2,))
        assert reduced.dtype == dtype
        with dask.config.set(scheduler="threads"):
            found = reduced.compute()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, fair.transform(X.astype(dtype)), atol=1e-4)


@pytest.mark.parametrize("whiten", [False, True])
def test_transform_of_frames_is_lazy_and_keeps_divisions(nothing_computed, whiten):
    fair = FairPCA(2, whiten=whiten, criterion="minmax").fit(FRAME[NAMES], sensitive_features=AGE)
    by_id = dd.from_pandas(FRAME.set_index("id").sort_index(), npartitions=4)
    for lazy in (spread(), by_id):
        reduced = fair.transform(lazy)
        assert reduced.divisions == lazy.divisions
        assert reduced.columns.tolist() == ["fairpca0", "fairpca1"]
        assert reduced.dtypes.tolist() == [np.float64, np.float64]
        with dask.config.set(scheduler="threads"):
            found, rows = reduced.compute(), lazy.compute()
        assert found.index.equals(rows.index)
        np.testing.assert_allclose(found, fair.transform(rows[NAMES]), atol=1e-9)


def test_set_output_gathers_nothing(nothing_computed):
    fair = (
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=AGE).set_output(transform="pandas")
    )
    rows = da.from_array(X, chunks=(170, 6))
    assert isinstance(fair.transform(rows), da.Array)
    with config_context(transform_output="polars"):
        assert isinstance(fair.transform(rows), da.Array)
        with dask.config.set(scheduler="threads"):
            assert isinstance(FairPCA(2, groups=None).fit_transform(rows), da.Array)
    assert isinstance(fair.transform(X), pd.DataFrame)


def test_transform_refuses_when_computed(threads):
    fair = FairPCA(2, groups=None).fit(X)
    broken = X.copy()
    broken[5, 5] = np.inf
    with refused(ValueError, "infinity"):
        fair.transform(da.from_array(broken, chunks=(170, 6))).compute()


def lazy_rows():
    return da.from_array(X, chunks=(170, 6))


def fitted(rows):
    return FairPCA(2, groups=None).fit(rows)


@pytest.mark.parametrize(
    ("work", "words"),
    [
        (
            lambda: FairPCA(7, criterion="minmax").fit(lazy_rows()),
            "n_components=7 n_features=6",
        ),
        (
            lambda: FairPCA(7, criterion="minmax").fit(spread()[NAMES]),
            "n_features=6",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(spread(), sensitive_features="agee"),
            "no column 'agee'",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(lazy_rows(), sensitive_features="age"),
            "have no names",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(lazy_rows(), sensitive_features=AGE),
            "ndarray",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(spread()[NAMES], sample_weight=FRAME["w"]),
            "names of columns",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(
                spread()[NAMES], sensitive_features=spread()["age"]
            ),
            "names of columns",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(
                lazy_rows(), sensitive_features=spread()["age"]
            ),
            "Dask array Series",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(
                lazy_rows(), sensitive_features=da.zeros(1199, chunks=100)
            ),
            "inconsistent [1200, 1199]",
        ),
        (
            lambda: FairPCA(2, criterion="minmax").fit(
                lazy_rows(), sensitive_features=spread(5)["age"].astype(object).to_dask_array()
            ),
            "8 chunks 5",
        ),
        (lambda: FairPCA(2, criterion="minmax").fit(lazy_rows()[:, 0]), "2D array"),
        (
            lambda: FairPCA(2, criterion="minmax").fit(
                lazy_rows(), sensitive_features=da.zeros((1200, 2, 2))
            ),
            "one or two dimensions",
        ),
        (lambda: FairPCA(1, criterion="minmax").fit(spread()["age"]), "pass data frame"),
        (lambda: FairPCA(2, criterion="minmax").fit(dask.delayed(np.asarray)(X)), "Delayed"),
        (lambda: transform_distributed(fitted(X), X), "ndarray"),
        (lambda: read_moments(spread(), features=["c", "age"]), "no numbers 'age'"),
        (lambda: read_moments(spread()[["age"]], sensitive_features="age"), "no numeric columns"),
        (lambda: read_moments(lazy_rows(), missing_labels="no"), "missing_labels"),
        (
            lambda: fitted(X).transform(lazy_rows()[:, :5]),
            "5 features FairPCA",
        ),
        (
            lambda: fitted(FRAME[NAMES]).transform(spread()[NAMES[1:]]),
            "no column 'a.b'",
        ),
        (lambda: fitted(X).transform(spread()), "10 features"),
        (
            lambda: fitted(X).inverse_transform(lazy_rows()[:, :2]),
            "Array Dask",
        ),
        (lambda: fitted(X).score(lazy_rows()), "Array of Dask"),
        (lambda: GroupMoments.from_rows(spread()), "DataFrame"),
    ],
)
def test_refusals_before_any_work(work, words, nothing_computed):
    with refused((ValueError, TypeError), *words.split()):
        work()


def test_a_transform_without_a_fit_is_refused():
    with pytest.raises(NotFittedError):
        FairPCA(2, criterion="minmax").transform(lazy_rows())


def test_rows_of_other_number_are_noticed_in_the_partitions(threads):
    rows, groups = da.from_array(X, chunks=(100, 6)), da.from_array(AGE, chunks=100)
    keep = da.from_array(np.arange(1200) > 150, chunks=100)
    with refused(ValueError, "partitions", "inconsistent numbers"):
        FairPCA(2, criterion="minmax").fit(
            rows[keep], sensitive_features=groups[da.logical_not(keep)]
        )


def test_no_rows_and_no_weights(threads):
    rows = da.from_array(X, chunks=(100, 6))
    for none in (
        lambda: FairPCA(2, criterion="minmax").fit(rows[rows[:, 0] > 1e9]),
        lambda: FairPCA(2, criterion="minmax").fit(rows, sample_weight=da.zeros(1200, chunks=100)),
    ):
        with refused(ValueError, "no rows", "positive weight"):
            none()
    with refused(ValueError, "Negative", "sample_weight"):
        FairPCA(2, criterion="minmax").fit(rows, sample_weight=-da.ones(1200, chunks=100))


def test_the_page_prints_what_it_shows(threads, capsys):
    page = (Path(__file__).parents[2] / "docs" / "clusters.md").read_text(encoding="utf-8")
    (_, example), (_, shown), _ = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out == shown


@pytest.mark.filterwarnings("default:Columns without numbers are left out")
def test_columns_that_are_no_features_are_named(threads):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    frame["group"] = ["x", "y"] * 20
    frame["number"], frame["day"] = frame["a"].astype(str), pd.Timestamp("2020-01-01")
    rows = dd.from_pandas(frame, npartitions=2)
    with warned(FairnessWarning, "left out", "'number', 'day'"):
        fair = FairPCA(1).fit(rows, sensitive_features="group")
    assert list(fair.feature_names_in_) == ["a", "b", "c"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", FairnessWarning)
        FairPCA(1).fit(rows.drop(columns=["number", "day"]), sensitive_features="group")


def test_columns_with_missing_values_are_named(threads):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
    frame.loc[30, "b"] = np.nan
    rows = dd.from_pandas(frame.assign(group=1), npartitions=2)
    with refused(ValueError, "one of the partitions", "'b'", "missing"):
        FairPCA(1).fit(rows, sensitive_features="group")
