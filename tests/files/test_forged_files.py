"""Files with parts that cannot be: what is said of each, and what is not refused."""

import io
import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.files.moments_file import check_scatters
from fairpca.model_file import load_model, save_model
from fairpca.sources.files import Pass
from studies.file_mutations import archive_of, members_of, npy, twice, with_sums
from studies.fuzz_files import KINDS


def test_a_load_takes_little_more_than_the_arrays(tmp_path):
    rng = np.random.default_rng(0)
    moments = GroupMoments.from_rows(rng.normal(size=(20, 600)), ["a", "b"] * 10)
    moments.save(tmp_path / "a.moments")
    sizes = moments.scatter.nbytes
    tracemalloc.start()
    try:
        GroupMoments.load(tmp_path / "a.moments")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * sizes


# One sentence for each thing that cannot be


def header_with(change):
    def forged(members):
        header = json.loads(members["header.json"])
        change(header)
        return with_sums(members, header)

    return forged


def array_with(name, change):
    def forged(members):
        array = np.load(io.BytesIO(members[f"{name}.npy"]))
        members[f"{name}.npy"] = npy(change(array))
        return with_sums(members)

    return forged


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def both(array, value):
    array[0, 0, 1] = array[0, 1, 0] = value
    return array


def indefinite(array):
    """Each pair of columns is possible, all three together are not."""
    array[0] = 0.0
    array[0, :3, :3] = [[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]]
    array[0, 3, 3] = array[0, 4, 4] = 1.0
    return array


MOMENTS = [
    (header_with(lambda h: h.update(version=0)), "its version of the format is 0, which is no"),
    (header_with(lambda h: h.update(version=True)), "its version of the format is True, which is"),
    (header_with(lambda h: h.update(version=1.5)), "its version of the format is 1.5, which is no"),
    (header_with(lambda h: h.update(version="1")), "its version of the format is '1', which is no"),
    (header_with(lambda h: h.update(n_dropped=-1)), "its n_dropped is -1, which is"),
    (
        header_with(lambda h: h["feature_names"].__setitem__(0, 7)),
        "of its feature_names, 7 is no text",
    ),
    (header_with(lambda h: h.update(feature_names="abcde")), "its feature_names are no list"),
    (
        header_with(lambda h: h.update(group_names=["sex", None])),
        "group_names, None is no text",
    ),
    (
        header_with(lambda h: h.update(group_names=["a", "a"])),
        "group_names, 'a' is there twice",
    ),
    (header_with(lambda h: h.update(group_names=["a"])), "group_names are not one for each"),
    (
        header_with(lambda h: h.update(group_orders=[None])),
        "group_orders are not one for each",
    ),
    (header_with(lambda h: h["labels"].__setitem__(0, ["f", {}])), "its parts do not fit together"),
    (
        header_with(lambda h: h["labels"].__setitem__(0, ["f", [1]])),
        r"\['f', \[1\]\] can be no label",
    ),
    (
        header_with(lambda h: h["labels"].__setitem__(0, "f")),
        "different numbers of sensitive columns",
    ),
    (
        header_with(lambda h: h["labels"].__setitem__(0, {"float": "nan"})),
        "can be no label of a group",
    ),
    (header_with(lambda h: h.update(checksums=[])), "its checksums are no table"),
    (header_with(lambda h: h["checksums"].update(more="0")), "its array 'more' is not known"),
    (header_with(lambda h: h.update({"pass": 3})), "its list of files read is no table"),
    (array_with("count", put(0, 0)), "its numbers of rows are not all from 1 on"),
    (array_with("count", put(0, -5)), "its numbers of rows are not all from 1 on"),
    (array_with("count", lambda a: a.astype(float)), "its array count is of another type"),
    (
        array_with("weight", put(0, np.inf)),
        "its numbers of weight are not all positive finite numbers",
    ),
    (
        array_with("weight", put(0, 0.0)),
        "its numbers of weight are not all positive finite numbers",
    ),
    (
        array_with("weight_squares", put(1, -1.0)),
        "its numbers of weight_squares are not all positive",
    ),
    (array_with("mean", put((0, 0), np.nan)), "its numbers of mean are not all finite numbers"),
    (
        array_with("mean", lambda a: a[:, :4]),
        "its array weight_squares|its array scatter is of another",
    ),
    (array_with("mean", lambda a: a.T.copy()), "is of another shape than the rest of it"),
    (array_with("scatter", put((0, 0, 0), np.inf)), "its numbers of scatter are not all finite"),
    (
        array_with("scatter", put((0, 0, 0), -1.0)),
        r"group \('f', 1\) has a negative sum of squares",
    ),
    (array_with("scatter", put((0, 0, 1), 0.5)), r"group \('f', 1\) is not the same both ways"),
    (
        array_with("scatter", lambda a: both(a, 1e9)),
        "entries that are larger than its sums of squares",
    ),
    (array_with("scatter", indefinite), "is not positive semi-definite, as all scatters are"),
    (array_with("scatter", lambda a: a.astype(object)), "its array scatter is of another type"),
    (lambda m: archive_of({**m, "evil.npy": b""}), "some of its parts are missing or unknown"),
    (lambda m: twice(archive_of(m), "mean.npy"), "two of its parts have the same name"),
    (
        lambda m: archive_of(
            {**m, "header.json": m["header.json"].replace(b"{", b'{"a":1,"a":2,', 1)}
        ),
        "a key is there twice in its header",
    ),
    (
        lambda m: archive_of({**m, "header.json": m["header.json"].replace(b": 3", b": NaN")}),
        "its header has NaN in the place of a number",
    ),
    (
        lambda m: archive_of(
            {**m, "header.json": m["header.json"].replace(b"sex", "séx".encode())}
        ),
        "its header has characters that are not written there",
    ),
]


def test_each_thing_that_moments_cannot_be_is_said(tmp_path):
    path = tmp_path / "a.moments"
    whole = KINDS["file of moments"].make()
    for forged, words in MOMENTS:
        path.write_bytes(forged(members_of(whole)))
        with pytest.raises(ValueError, match=words) as caught:
            GroupMoments.load(path)
        assert str(caught.value).startswith(f"{str(path)!r} is damaged: ")
        assert str(caught.value).endswith(".")
        with pytest.raises(ValueError, match=words):
            GroupMoments.from_bytes(path.read_bytes())


def columns_with(change):
    return header_with(lambda header: change(header["preparation"]["columns"]))


def criterion_with(**changes):
    kept = {"criterion": "MinMax", "parameters": {}} | changes
    return header_with(lambda header: header["parameters"].update(criterion=kept))


def without(members, name):
    """The header, once an array is left out of the file."""
    del members[f"{name}.npy"]
    header = json.loads(members["header.json"])
    del header["checksums"][name]
    return header


MODELS = [
    (
        array_with("preparation.scales", put(0, 0.0)),
        "its numbers of preparation.scales are not all positive finite numbers",
    ),
    (
        array_with("preparation.scales", put(0, -1.0)),
        "its numbers of preparation.scales are not all positive finite numbers",
    ),
    (
        array_with("preparation.scales", put(0, np.nan)),
        "its numbers of preparation.scales are not all positive finite",
    ),
    (
        array_with("preparation.means", put(0, np.inf)),
        "its numbers of preparation.means are not all finite numbers",
    ),
    (array_with("components", lambda a: 1.01 * a), "its numbers of components are not orthonormal"),
    (array_with("solution.basis", put((0, 0), 5.0)), "solution.basis are not orthonormal"),
    (
        array_with("baselines.own_bases", lambda a: a[:, :-1]),
        "baselines.own_bases is of another shape",
    ),
    (array_with("mean", lambda a: a[:-1]), "its array mean is of another shape than the rest"),
    (
        array_with("explained_variance", put(0, -1.0)),
        "explained_variance are not all positive or zero",
    ),
    (array_with("groups.loss", put(0, np.nan)), "its numbers of groups.loss are not all finite"),
    (
        header_with(lambda h: h.update(version=-1)),
        "its version of the format is -1, which is no whole",
    ),
    (array_with("groups.count", put(0, -3)), "numbers of groups.count are not all from 1 on"),
    (array_with("groups.count", lambda a: a + 0.5), "its array groups.count is of another type"),
    (array_with("groups.variance", put(0, -1.0)), "groups.variance are not all positive or zero"),
    (lambda m: with_sums(m, without(m, "mean")), "its array mean is missing"),
    (
        header_with(lambda h: h["groups"].update(pca_is_best=1)),
        "pca_is_best is 1, which is no true",
    ),
    (header_with(lambda h: h["groups"]["labels"].__setitem__(0, [])), r"\[\] can be no label"),
    (header_with(lambda h: h["certificate"].update(status="best")), "status is 'best', not known"),
    (
        header_with(lambda h: h["certificate"].update(is_nested="False")),
        "is_nested is 'False', which",
    ),
    (
        header_with(lambda h: h["certificate"].update(value="nan")),
        "value is 'nan', which is no number",
    ),
    (header_with(lambda h: h["certificate"].update(goal=1)), "goal is 1, which is no text"),
    (
        header_with(lambda h: h.update(noise_variance="inf")),
        "its noise_variance is 'inf', which cannot be",
    ),
    (
        header_with(lambda h: h["solution"].update(n_iter=-1)),
        "solution.n_iter is -1, which is no whole",
    ),
    (
        header_with(lambda h: h["parameters"].update(whiten="no")),
        "whiten is 'no', which is no true",
    ),
    (criterion_with(criterion="Evil"), "its criterion is not known"),
    (criterion_with(criterion=["MinMax"]), "its parts do not fit together"),
    (criterion_with(parameters={"evil": 1}), "its parts do not fit together"),
    (criterion_with(parameters=None), "its parts do not fit together"),
    (header_with(lambda h: h["nesting"]["status"].pop()), "nesting.status is 1, not 2"),
    (
        header_with(lambda h: h["preparation"].update(ignored=[1])),
        "preparation.ignored, 1 is no text",
    ),
    (
        columns_with(lambda c: c[0].update(name=3)),
        "preparation.columns.name is 3, which is no text",
    ),
    (columns_with(lambda c: c[0].update(name=c[1]["name"])), "'column 1' is there twice"),
    (columns_with(lambda c: c[0].update(kind="pickle")), "kind is 'pickle', not known"),
    (
        columns_with(lambda c: c[0].update(categories=["x"])),
        "its parts do not fit together",
    ),
    (
        columns_with(lambda c: c[5]["categories"].append(2)),
        "preparation.columns.categories, 2 is no text",
    ),
    (
        columns_with(lambda c: c[5]["categories"].append("more")),
        "columns become 9, and its components",
    ),
]


def test_each_thing_that_a_model_cannot_be_is_said(tmp_path):
    path = tmp_path / "m.fairpca"
    whole = KINDS["model file"].make()
    for forged, words in MODELS:
        path.write_bytes(forged(members_of(whole)))
        with pytest.raises(ValueError, match=words) as caught:
            load_model(path)
        assert str(caught.value).startswith(f"{str(path)!r} is damaged: ")
        assert str(caught.value).endswith(".")


CHECKPOINTS = [
    (lambda p: p.update(files=3), "its list of files read is no list"),
    (lambda p: p["files"][0].pop(), "is no name, size and date of a file that was read"),
    (lambda p: p["files"][0].__setitem__(1, -1), "is no name, size and date of a file"),
    (lambda p: p["files"].append(p["files"][0]), "'a.parquet' is there twice"),
    (lambda p: p["columns"].update(weight=3), "columns.weight is 3, which is no text"),
    (lambda p: p["columns"]["features"].pop(), "columns.features is 4, not 5"),
    (
        lambda p: p["columns"].update(all_numeric="x"),
        "all_numeric is 'x', which is no true or false",
    ),
    (lambda p: p.pop("columns"), "its parts do not fit together"),
    (lambda p: p.pop("asked"), "is of a pass with other columns or options"),
]


def test_each_thing_that_a_checkpoint_cannot_be_is_said(tmp_path):
    path = tmp_path / "c.moments"
    whole = KINDS["checkpoint"].make()
    for change, words in CHECKPOINTS:
        path.write_bytes(header_with(lambda h, c=change: c(h["pass"]))(members_of(whole)))
        with pytest.raises(ValueError, match=words):
            KINDS["checkpoint"].load(path)
    path.write_bytes(whole)
    assert isinstance(KINDS["checkpoint"].load(path), Pass)


# What is possible is not refused


@pytest.mark.parametrize("n", [1, 2, 40])
def test_scatters_of_rows_of_every_size_pass(n):
    rng = np.random.default_rng(n)
    scales = np.array([1e-200, 1e-160, 1e-9, 1.0, 1e9, 1e150, 0.0, 1.0])
    shifts = np.array([0.0, 0.0, 1e3, 1e9, -1e15, 0.0, 7.0, 0.1])
    X = rng.normal(size=(n, 8)) * scales + shifts
    X[:, 7] = X[:, 3] * 1e-9  # the same up to rounding
    parts = [GroupMoments.from_rows(X[i::3]) for i in range(3) if len(X[i::3])]
    moments = GroupMoments.merge(parts)
    for made in (moments, GroupMoments.from_rows(X), moments + moments):
        again = GroupMoments.from_bytes(made.to_bytes())
        np.testing.assert_array_equal(again.scatter, made.scatter)


def test_large_scatters_are_checked_by_pairs_of_columns():
    scatter = np.eye(1001)[None]
    scatter[0, 7, 900] = scatter[0, 900, 7] = 0.9
    check_scatters(scatter, np.zeros((1, 1001)), np.ones(1), ["a"])
    scatter[0, 7, 900] = scatter[0, 900, 7] = 1.1
    with pytest.raises(ValueError, match="larger than its sums of squares allow"):
        check_scatters(scatter, np.zeros((1, 1001)), np.ones(1), ["a"])


def test_columns_of_the_same_name_can_be_saved(tmp_path):
    """Older versions of scikit-learn take such data frames."""
    X, names = np.random.default_rng(0).normal(size=(20, 3)), ("a", "b", "a")
    moments = replace(GroupMoments.from_rows(X, ["f", "m"] * 10), feature_names=names)
    assert GroupMoments.from_bytes(moments.to_bytes()).feature_names == names
    fair = FairPCA(1, criterion="minmax").fit_moments(moments)
    save_model(fair, tmp_path / "m.fairpca")
    model = load_model(tmp_path / "m.fairpca")
    assert model.columns is None
    assert model.fair_pca.feature_names_in_.tolist() == list(names)


# Groups of few rows


def test_saving_few_rows_of_a_group_is_warned_of(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 3))
    groups = np.array(["one"] + ["four"] * 4 + ["many"] * 35)
    moments = GroupMoments.from_rows(X, groups)
    words = (
        r"^This file of moments holds what can tell of single rows, because groups have fewer than "
        r"5: 'four' \(4 rows\), 'one' \(1 row\); merge such groups or leave them out before you "
        r"share it \(docs/privacy\.md\)\.$"
    )
    with pytest.warns(FairnessWarning, match=words):
        moments.save(tmp_path / "a.moments")
    np.testing.assert_array_equal(moments.mean[2], X[0])  # what the warning is about
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with pytest.warns(FairnessWarning, match=r"^This model file holds .* 'one' \(1 row\)"):
        save_model(fair, tmp_path / "m.fairpca")
    # Without the groups' own subspaces: that of one row is the row.
    assert load_model(tmp_path / "m.fairpca").fair_pca.baselines_ is None
    direction = fair.baselines_.own_bases[2][:, 0]
    length = np.sqrt(fair.group_table_.variance[2])
    rows = [fair.mean_ + sign * length * direction for sign in (1, -1)]
    assert min(np.abs(row - X[0]).max() for row in rows) < 1e-9
    with pytest.warns(FairnessWarning, match="This model file"):
        save_model(fair, tmp_path / "m.fairpca", baselines=True)
    assert load_model(tmp_path / "m.fairpca").fair_pca.baselines_ is not None


def test_saving_groups_of_five_rows_warns_of_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(10, 3))
    groups = ["a", "b"] * 5
    GroupMoments.from_rows(X, groups).save(tmp_path / "a.moments")
    fair = FairPCA(1, criterion="minmax").fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "m.fairpca")
    assert load_model(tmp_path / "m.fairpca").fair_pca.baselines_ is not None
