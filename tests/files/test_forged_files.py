"""Files with parts that cannot be: what is said of each, and what is not refused."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from fairpca import FairnessWarning, FairPCA, GroupMoments
from fairpca.files.moments_file import check_scatters
from fairpca.model_file import load_model, save_model
from fairpca.sources.checkpoints import Pass
from studies.file_mutations import file_of, parts_of, signed, with_array, with_header
from studies.fuzz_files import KINDS

from texts import refused, warned


def test_a_load_takes_little_more_than_the_arrays(tmp_path):
    rng = np.random.default_rng(0)
    moments = GroupMoments.from_rows(rng.normal(size=(1300, 600)), ["a", "b"] * 650)
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


def edited_text(data, before, after):
    first, text, numbers = data.split(b"\n", 2)
    return signed(first.rpartition(b" ")[0], text.replace(before, after), numbers)


MOMENTS = [
    (with_header(lambda h: h.update(n_dropped=-1)), "n_dropped -1"),
    (
        with_header(lambda h: h["feature_names"].__setitem__(0, 7)),
        "feature_names 7 text",
    ),
    (with_header(lambda h: h.update(feature_names="abcde")), "feature_names list"),
    (
        with_header(lambda h: h.update(group_names=["sex", None])),
        "group_names None text",
    ),
    (
        with_header(lambda h: h.update(group_names=["a", "a"])),
        "group_names 'a' twice",
    ),
    (with_header(lambda h: h.update(group_names=["a"])), "group_names one for each"),
    (with_header(lambda h: h["labels"].__setitem__(0, ["f", {}])), "parts fit together"),
    (
        with_header(lambda h: h["labels"].__setitem__(0, ["f", [1]])),
        "['f', [1]] no label",
    ),
    (
        with_header(lambda h: h["labels"].__setitem__(0, "f")),
        "different numbers sensitive columns",
    ),
    (
        with_header(lambda h: h["labels"].__setitem__(0, {"decimal": "nan"})),
        "label group",
    ),
    (with_header(lambda h: h.update(arrays=[])), "parts fit together"),
    (with_header(lambda h: h["arrays"].update(more=[0])), "array 'more' known"),
    (with_header(lambda h: h["arrays"].update(mean=[-1, -5])), "shape array 'mean' cannot be"),
    (with_header(lambda h: h["arrays"].update(mean=[2.0, 5])), "shape array 'mean' cannot be"),
    (
        with_header(lambda h: h["arrays"].update(mean=[10**4200] * 1500)),
        "shape array 'mean' cannot be",
    ),
    (with_header(lambda h: h["arrays"].pop("scatter")), "more numbers than its arrays"),
    (with_header(lambda h: h.update({"pass": 3})), "pass other entries"),
    (with_array("count", put(0, 0)), "numbers count finite range"),
    (with_array("count", put(0, -5)), "numbers count finite range"),
    (with_array("count", lambda a: a.astype(float)), "numbers count finite range"),
    (with_array("mean", lambda a: a[0]), "array mean number axes"),
    (
        with_array("weight", put(0, np.inf)),
        "numbers weight finite range",
    ),
    (
        with_array("weight", put(0, 0.0)),
        "numbers weight finite range",
    ),
    (
        with_array("weight_squares", put(1, -1.0)),
        "numbers weight_squares range",
    ),
    (with_array("mean", put((0, 0), np.nan)), "numbers mean finite range"),
    (
        with_array("mean", lambda a: a[:, :4]),
        "array another shape",
    ),
    (with_array("mean", lambda a: a.T.copy()), "another shape rest"),
    (with_array("scatter", put((0, 0, 0), np.inf)), "numbers scatter finite"),
    (
        with_array("scatter", put((0, 0, 0), -1.0)),
        "('f', 1) negative squares",
    ),
    (with_array("scatter", put((0, 0, 1), 0.5)), "('f', 1) same both ways"),
    (
        with_array("scatter", lambda a: both(a, 1e9)),
        "entries larger sums squares",
    ),
    (with_array("scatter", indefinite), "positive semi-definite"),
    (lambda data: data + bytes(8), "not what was written"),
    (lambda data: data[:-1], "not what was written, cut short"),
    (lambda data: edited_text(data, b": 3", b": NaN"), "header NaN number"),
    (
        lambda data: edited_text(data, b"sex", "séx".encode()),
        "header characters written",
    ),
]


def test_each_thing_that_moments_cannot_be_is_said(tmp_path):
    path = tmp_path / "a.moments"
    whole = KINDS["file of moments"].make()
    for forged, words in MOMENTS:
        path.write_bytes(forged(whole))
        with refused(ValueError, *words.split()) as caught:
            GroupMoments.load(path)
        assert str(caught.value).startswith(f"{str(path)!r} is damaged: ")
        assert str(caught.value).endswith(".")
        with refused(ValueError, *words.split()):
            GroupMoments.from_bytes(path.read_bytes())


def columns_with(change):
    return with_header(lambda header: change(header["preparation"]["columns"]))


def criterion_with(**changes):
    kept = {"criterion": "MinMax", "parameters": {}} | changes
    return with_header(lambda header: header["parameters"].update(criterion=kept))


def without(data, name):
    """The file without one of its arrays."""
    kind, header, arrays = parts_of(data)
    del arrays[name], header["arrays"][name]
    return file_of(kind, header, arrays)


MODELS = [
    (
        with_array("preparation.scales", put(0, 0.0)),
        "numbers preparation.scales finite range",
    ),
    (
        with_array("preparation.scales", put(0, -1.0)),
        "numbers preparation.scales finite range",
    ),
    (
        with_array("preparation.scales", put(0, np.nan)),
        "numbers preparation.scales finite range",
    ),
    (
        with_array("preparation.means", put(0, np.inf)),
        "numbers preparation.means finite range",
    ),
    (with_array("components", lambda a: 1.01 * a), "numbers components orthonormal"),
    (with_array("solution.basis", put((0, 0), 5.0)), "solution.basis orthonormal"),
    (
        with_array("baselines.own_bases", lambda a: a[:, :-1]),
        "baselines.own_bases another shape",
    ),
    (with_array("mean", lambda a: a[:-1]), "array mean another shape rest"),
    (
        with_array("explained_variance", put(0, -1.0)),
        "explained_variance finite range",
    ),
    (with_array("groups.loss", put(0, np.nan)), "numbers groups.loss finite"),
    (with_array("groups.count", put(0, -3)), "numbers groups.count finite range"),
    (with_array("groups.variance", put(0, -1.0)), "groups.variance finite range"),
    (lambda data: without(data, "mean"), "array mean missing"),
    (
        with_header(lambda h: h["groups"].update(pca_is_best=1)),
        "pca_is_best 1 true",
    ),
    (with_header(lambda h: h["groups"]["labels"].__setitem__(0, [])), "[] no label"),
    (with_header(lambda h: h["certificate"].update(status="best")), "status 'best' known"),
    (
        with_header(lambda h: h["certificate"].update(covers_mixtures="False")),
        "covers_mixtures 'False'",
    ),
    (
        with_header(lambda h: h["certificate"].update(value="nan")),
        "value 'nan' number",
    ),
    (with_header(lambda h: h["certificate"].update(goal=1)), "goal 1 text"),
    (
        with_header(lambda h: h.update(noise_variance=np.inf)),
        "noise_variance inf no",
    ),
    (
        with_header(lambda h: h["solution"].update(n_iter=-1)),
        "solution.n_iter -1 whole",
    ),
    (
        with_header(lambda h: h["parameters"].update(whiten="no")),
        "whiten 'no' true",
    ),
    (criterion_with(criterion="Evil"), "criterion known"),
    (criterion_with(criterion=["MinMax"]), "parts fit together"),
    (criterion_with(parameters={"evil": 1}), "parts fit together"),
    (criterion_with(parameters=None), "parts fit together"),
    (
        with_header(lambda h: h["preparation"].update(ignored=[1])),
        "preparation.ignored 1 text",
    ),
    (
        columns_with(lambda c: c[0].update(name=3)),
        "preparation.columns.name 3 text",
    ),
    (columns_with(lambda c: c[0].update(name=c[1]["name"])), "'column 1' twice"),
    (
        columns_with(lambda c: c[0].update(categories=["x", "y"])),
        "columns 9 components",
    ),
    (
        columns_with(lambda c: c[5]["categories"].append(2)),
        "preparation.columns.categories 2 text",
    ),
    (
        columns_with(lambda c: c[5]["categories"].append("more")),
        "columns 9 components",
    ),
]


def test_each_thing_that_a_model_cannot_be_is_said(tmp_path):
    path = tmp_path / "m.fairpca"
    whole = KINDS["model file"].make()
    for forged, words in MODELS:
        path.write_bytes(forged(whole))
        with refused(ValueError, *words.split()) as caught:
            load_model(path)
        assert str(caught.value).startswith(f"{str(path)!r} is damaged: ")
        assert str(caught.value).endswith(".")


CHECKPOINTS = [
    (lambda p: p.update(files=3), "pass.files no list"),
    (lambda p: p["files"][0].pop("size"), "pass.files other entries"),
    (lambda p: p["files"][0].update(size=-1), "pass.files.size -1"),
    (lambda p: p["files"][0].update(changed_ns="x"), "parts fit together"),
    (lambda p: p["files"].append(p["files"][0]), "'a.parquet' twice"),
    (lambda p: p.pop("files"), "pass other entries"),
    (lambda p: p.update(asked="more"), "pass other columns or options"),
]


def test_each_thing_that_a_checkpoint_cannot_be_is_said(tmp_path):
    path = tmp_path / "c.moments"
    whole = KINDS["checkpoint"].make()
    for change, words in CHECKPOINTS:
        path.write_bytes(with_header(lambda h, c=change: c(h["pass"]))(whole))
        with refused(ValueError, *words.split()):
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
    with refused(ValueError, "sums of squares"):
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
    words = ("file of moments", "5: 'four' (4 rows), 'one' (1 row);", "merge", "docs/privacy.md")
    with warned(FairnessWarning, *words):
        moments.save(tmp_path / "a.moments")
    np.testing.assert_array_equal(moments.mean[2], X[0])  # what the warning is about
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    with warned(FairnessWarning, "model file", "'one' (1"):
        save_model(fair, tmp_path / "m.fairpca")
    # Without the groups' own subspaces: that of one row is the row.
    assert load_model(tmp_path / "m.fairpca").fair_pca.baselines_ is None
    direction = fair.baselines_.own_bases[2][:, 0]
    length = np.sqrt(fair.group_table_.variance[2])
    rows = [fair.mean_ + sign * length * direction for sign in (1, -1)]
    assert min(np.abs(row - X[0]).max() for row in rows) < 1e-9


def test_saving_groups_of_five_rows_warns_of_nothing(tmp_path):
    X = np.random.default_rng(0).normal(size=(10, 3))
    groups = ["a", "b"] * 5
    GroupMoments.from_rows(X, groups).save(tmp_path / "a.moments")
    fair = FairPCA(1, criterion="minmax").fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "m.fairpca")
    assert load_model(tmp_path / "m.fairpca").fair_pca.baselines_ is not None
