"""Preparations and model files: what comes back, and what is refused."""

import json
import os
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairpca import AtMost, Equal, ExactSolver, FairPCA, MinMax, audit
from fairpca.files.atomic import replacing
from fairpca.model_file import VERSION, load_model, save_model
from fairpca.tables.preparation import Preparation
from studies.file_mutations import with_header

from hostile import HOSTILE
from texts import refused


def people(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["cook", "smith", "None"], n),
            "income": rng.normal(3e4, 1e4, n),
            "sex": np.where(np.arange(n) % 3 == 0, "f", "m"),
            "height": rng.normal(1.7, 0.1, n).astype(np.float32),
            "member": rng.random(n) < 0.5,
            "same": 0.1,
        }
    )


FEATURES = ["age", "job", "income", "height", "member", "same"]


def by_hand(frame):
    """The same preparation with scikit-learn: encode, then standardise."""
    encoder = OneHotEncoder(sparse_output=False)
    rest = frame[FEATURES].astype({"height": float, "member": float})
    columns = ColumnTransformer(
        [(name, encoder if name == "job" else "passthrough", [name]) for name in FEATURES]
    )
    return StandardScaler().fit_transform(columns.fit_transform(rest).astype(float))


@pytest.fixture
def fitted():
    frame = people()
    preparation = Preparation.learn(frame, sensitive=["sex"])
    fair = FairPCA(2, criterion="minmax").fit(
        preparation.apply(frame), sensitive_features=frame["sex"]
    )
    return frame, preparation, fair


@pytest.fixture
def saved(fitted, tmp_path):
    _, preparation, fair = fitted
    path = tmp_path / "model.fairpca"
    save_model(fair, path, preparation=preparation)
    return path


def rewritten(path, change):
    """The file with its header changed, a checksum that fits, and nothing else."""
    path.write_bytes(with_header(change)(path.read_bytes()))


# Preparation


def test_a_preparation_does_what_scikit_learn_does():
    frame = people()
    preparation = Preparation.learn(frame, sensitive=["sex"], standardize="all")
    np.testing.assert_allclose(preparation.apply(frame), by_hand(frame), atol=1e-12)
    plain = Preparation.learn(frame, drop=["job", "sex"], standardize="none")
    np.testing.assert_array_equal(
        plain.apply(frame), frame.drop(columns=["job", "sex"]).astype(float)
    )


def test_a_pipeline_of_scikit_learn_does_the_work():
    """What `apply` adds to it are checks: the same numbers come out of the pipeline alone."""
    frame = people().drop(columns="sex")
    frame.loc[:5, "age"] = frame.loc[3:9, "job"] = None
    preparation = Preparation.learn(frame, impute=True)
    ready = frame.astype({"age": float, "job": object, "height": float, "member": float})
    ready["job"] = ready["job"].where(ready["job"].notna(), None)
    found = preparation.transformer.transform(ready)
    np.testing.assert_array_equal(found, preparation.apply(frame))
    assert isinstance(preparation.transformer[0], ColumnTransformer)
    assert preparation.transformer[-1].mean_ is preparation.means


def test_constant_columns_become_exactly_zero():
    frame = people().assign(age=1e200)
    preparation = Preparation.learn(frame, sensitive=["sex"])
    columns = [preparation.feature_names.index(name) for name in ("same", "age")]
    assert (preparation.apply(frame)[:, columns] == 0.0).all()


def test_frames_of_polars_dictionaries_and_other_types_give_the_same():
    frame = people()
    preparation = Preparation.learn(frame, sensitive=["sex"])
    expected = preparation.apply(frame)
    others = [
        polars.DataFrame(frame.to_dict("list")),
        frame.to_dict("list"),
        frame[frame.columns[::-1]],
        frame.astype({"job": "category", "age": "Int64", "member": "boolean"}),
        frame.assign(age=[Decimal(int(age)) for age in frame["age"]]),
        frame.drop(columns="sex"),
    ]
    for other in others:
        np.testing.assert_allclose(preparation.apply(other), expected, rtol=1e-6)


def test_categories_that_were_read_as_numbers_are_still_known():
    preparation = Preparation.learn({"code": ["1", "2", "b"]}, standardize="none")
    for codes in ([2, 1], [2.0, 1.0]):
        assert preparation.apply({"code": codes}).tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda f: f, {"sensitive": ["gender"]}, "no column 'gender' 'age', 'job'"),
        (lambda f: f, {"drop": ["a", "b"]}, "no column 'a', 'b'"),
        (lambda f: f, {"standardize": "some"}, "standardize"),
        (lambda f: f[["sex"]], {"sensitive": ["sex"]}, "No columns left"),
        (lambda f: f.rename(columns={"age": ""}), {}, "Column no name"),
        (lambda f: f.rename(columns={"age": 3}), {}, "Names columns text 3"),
        (lambda f: f.rename(columns={"age": "job"}), {}, "same name 'job'"),
        (lambda f: f.assign(age=pd.Timestamp(0)), {}, "'age' dates times"),
        (lambda f: f.assign(age=[[1]] * len(f)), {}, "'age' neither numbers"),
        (lambda f: f.assign(age=[1, "a"] * 40), {}, "'age' neither numbers"),
        (lambda f: f.assign(age=[1e200, -1e200] * 40), {}, "squared 'age'"),
        (lambda f: f.assign(job=f.job.where(f.age > 30)), {}, "missing infinite 'job' ("),
        (
            lambda f: pd.concat([f.assign(job=[f"{i}-{j}" for i in range(80)]) for j in range(20)]),
            {},
            "'job' different text (1,600 leave out",
        ),
    ],
)
def test_tables_that_cannot_be_learned_from(change, options, message):
    with refused(ValueError, *message.split()) as caught:
        Preparation.learn(change(people()), **options)
    assert "\n" not in str(caught.value)


def test_missing_values_are_named_and_counted():
    frame = people()
    frame.loc[:4, "income"] = np.nan
    frame.loc[0, "height"] = np.inf
    frame.loc[:1, "job"] = None
    with refused(ValueError, "'job' (2)", "'income' (5)", "'height' (1)", "fill"):
        Preparation.learn(frame)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns=["age", "job"]), "lacks 'age'"),
        (lambda f: f.assign(other=1), "not know 'other'"),
        (lambda f: f.assign(job="poet"), "'job' 'poet'"),
        (lambda f: f.assign(age="old"), "'age' text numbers"),
        (lambda f: {**f.to_dict("list"), "age": [1.0]}, "different numbers rows"),
    ],
)
def test_tables_that_do_not_fit_the_model(saved, change, message):
    with refused(ValueError, *message.split()):
        load_model(saved).transform(change(people()))


# Model files


def test_everything_comes_back(fitted, saved):
    frame, preparation, fair = fitted
    model = load_model(saved)
    back = model.fair_pca
    for name in ("components_", "mean_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_array_equal(getattr(back, name), getattr(fair, name))
    assert back.get_params() == fair.get_params()
    assert repr(model) == f"FairModel(fair_pca={back!r})"  # without arrays
    assert str(model.fair_pca.group_table_) == str(fair.group_table_)
    assert model.fair_pca.group_table_.labels == fair.group_table_.labels
    assert str(back.certificate_) == str(fair.certificate_)
    assert repr(back.solution_) == repr(fair.solution_)
    assert vars(back.certificate_).keys() == vars(fair.certificate_).keys()
    for name, value in vars(fair.certificate_).items():
        np.testing.assert_array_equal(getattr(back.certificate_, name), value)
    assert model.columns == tuple(FEATURES)
    new = people(seed=1)
    np.testing.assert_array_equal(model.transform(new), fair.transform(preparation.apply(new)))
    rows = preparation.apply(frame)
    table = audit(back, rows, sensitive_features=frame["sex"])
    np.testing.assert_allclose(table.loss, fair.group_table_.loss, rtol=1e-10)


def test_reduced_rows_come_back_in_the_units_of_the_table(tmp_path):
    frame = people()
    preparation = Preparation.learn(frame, sensitive=["sex"])
    rows = preparation.apply(frame)
    save_model(
        FairPCA(rows.shape[1], criterion="minmax").fit(rows, sensitive_features=frame["sex"]),
        tmp_path / "all.fairpca",
        preparation=preparation,
    )
    model = load_model(tmp_path / "all.fairpca")
    restored = pd.DataFrame(
        model.inverse_transform(model.transform(frame)), columns=preparation.feature_names
    )
    np.testing.assert_allclose(restored["income"], frame["income"], rtol=1e-9)
    np.testing.assert_allclose(restored["job=cook"], frame["job"] == "cook", atol=1e-9)


def test_a_fit_without_preparation_keeps_its_names_or_takes_arrays(tmp_path):
    frame = people()[["age", "income", "height"]].astype(float)
    fair = FairPCA(2, criterion="minmax").fit(frame, sensitive_features=people()["sex"])
    save_model(fair, tmp_path / "named.fairpca")
    model = load_model(tmp_path / "named.fairpca")
    expected = fair.transform(frame)
    np.testing.assert_array_equal(model.fair_pca.transform(frame), expected)
    assert model.columns == ("age", "income", "height")
    np.testing.assert_array_equal(model.transform(frame[["height", "income", "age"]]), expected)
    fair = FairPCA(2, criterion="minmax").fit(frame.to_numpy(), sensitive_features=people()["sex"])
    save_model(fair, str(tmp_path / "plain.fairpca"))
    model = load_model(str(tmp_path / "plain.fairpca"))
    assert model.columns is None
    np.testing.assert_array_equal(model.transform(frame.to_numpy()), expected)
    reduced = model.inverse_transform(expected)
    np.testing.assert_array_equal(reduced, fair.inverse_transform(expected))


@pytest.mark.parametrize("solver", ["mw", "pareto", "u-fpca"])
def test_every_ending_can_be_kept(tmp_path, solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * [5, 4, 3, 2, 1, 1]
    X[:30] = X[:30, ::-1]
    X[30:60] = X[30:60, [2, 0, 1, 5, 3, 4]]
    groups = np.repeat([0, 1, 2], 30)
    if solver == "u-fpca":
        groups = np.minimum(groups, 1)
    fair = FairPCA(2, solver=solver, criterion="minmax").fit(X, sensitive_features=groups)
    save_model(fair, tmp_path / "model.fairpca")
    back = load_model(tmp_path / "model.fairpca").fair_pca
    np.testing.assert_array_equal(back.transform(X), fair.transform(X))
    assert str(back.certificate_) == str(fair.certificate_)
    assert back.n_components_ == fair.n_components_


def test_labels_of_all_kinds_and_parameters_that_are_objects(tmp_path):
    X = np.random.default_rng(0).normal(size=(120, 4))
    table = pd.DataFrame(
        {"a": [1, 2] * 60, "b": ["x"] * 60 + ["y"] * 60, "c": [True, True, False] * 40}
    )
    fair = FairPCA(2, criterion=Equal(np.float64(0.5)), solver=ExactSolver(n_starts=3))
    fair.fit(X, sensitive_features=table)
    save_model(fair, tmp_path / "m.fairpca")
    back = load_model(tmp_path / "m.fairpca").fair_pca
    assert back.group_table_.labels == fair.group_table_.labels
    assert back.solver == "exact"
    assert back.criterion.tolerance == 0.5
    own = type("OwnCriterion", (MinMax,), {})()  # of which a file can name no class
    with refused(ValueError, "OwnCriterion"):
        save_model(FairPCA(2, criterion=own).fit(X, sensitive_features=table), tmp_path / "n")
    dates = np.array(["2020-01-01", "2021-01-01"] * 60, dtype="datetime64[D]")
    save_model(
        FairPCA(2, criterion="minmax").fit(X, sensitive_features=dates), tmp_path / "m.fairpca"
    )
    back = load_model(tmp_path / "m.fairpca").fair_pca.group_table_
    assert back.labels == (date(2020, 1, 1), date(2021, 1, 1))
    ages = pd.cut(np.arange(120), 2)
    save_model(FairPCA(2).fit(X, sensitive_features=ages), tmp_path / "m.fairpca")
    back = load_model(tmp_path / "m.fairpca").fair_pca.group_table_
    assert back.labels == tuple(map(str, ages.categories))  # as no file has intervals


@pytest.mark.parametrize(
    "value", [[0.5, np.inf], {"x": 1.0, ("y", 2): np.float64(0.5)}, {("z",): [True, None]}]
)
def test_parameters_of_several_values_come_back(fitted, tmp_path, value):
    fair = clone(fitted[2]).set_params(criterion=AtMost(value, "loss"))
    vars(fair).update({name: kept for name, kept in vars(fitted[2]).items() if name[-1] == "_"})

    def criterion():
        save_model(fair, tmp_path / "m.fairpca")
        return load_model(tmp_path / "m.fairpca").fair_pca.criterion

    assert isinstance(criterion(), AtMost)
    assert criterion().get_params() == {"bounds": value, "measure": "loss"}
    fair.set_params(criterion__bounds=np.array([1.0, 2.0]))
    assert criterion().bounds == [1.0, 2.0]
    fair.set_params(criterion__bounds={"x": object()})
    assert criterion() == "soft"


def test_hostile_names_and_labels_come_back_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.normal(size=80) for name in HOSTILE})
    frame["text"] = np.resize(HOSTILE, 80)
    frame["groups"] = np.resize(HOSTILE, 80)
    preparation = Preparation.learn(frame, sensitive=["groups"])
    fair = FairPCA(3, criterion="minmax")
    fair.fit(preparation.apply(frame), sensitive_features=frame["groups"])
    save_model(fair, tmp_path / "m.fairpca", preparation=preparation)
    model = load_model(tmp_path / "m.fairpca")
    assert model.columns == (*HOSTILE, "text")
    assert set(model.fair_pca.group_table_.labels) == set(HOSTILE)
    assert model.transform(frame).shape == (80, 3)
    with refused(ValueError, "lacks") as caught:
        model.transform(frame[["text"]])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_labels_with_nanoseconds_come_back_as_text(tmp_path):
    times = pd.to_datetime([0, 43_200_000_000_001]).astype("datetime64[ns]")
    rows = np.random.default_rng(0).normal(size=(80, 3))
    fair = FairPCA(1, criterion="minmax").fit(rows, sensitive_features=times.repeat(40))
    save_model(fair, tmp_path / "m.fairpca")
    labels = load_model(tmp_path / "m.fairpca").fair_pca.group_table_.labels
    assert labels == (times[0], "1970-01-01T12:00:00.000000001")


def test_the_header_is_text_and_numbers_follow(fitted, saved):
    first, header, numbers = saved.read_bytes().split(b"\n", 2)
    assert first.startswith(b"fairpca model 1 ")
    assert "sex" in json.loads(header)["preparation"]["sensitive"]
    assert fitted[2].components_.tobytes() in numbers


def test_what_cannot_be_saved(fitted, tmp_path):
    path = tmp_path / "model.fairpca"
    with refused(TypeError, "a PCA"):
        save_model(PCA(2), path)
    with pytest.raises(NotFittedError):
        save_model(FairPCA(2, criterion="minmax"), path)
    other = FairPCA(1, criterion="minmax").fit(np.eye(4), sensitive_features=["a", "a", "b", "b"])
    with refused(ValueError, "8 columns", "FairPCA", "on 4"):
        save_model(other, path, preparation=fitted[1])
    assert list(tmp_path.iterdir()) == []


def test_foreign_files_are_refused(saved, tmp_path):
    foreign = tmp_path / "foreign.fairpca"
    np.savez(tmp_path / "arrays.npz", np.eye(2))
    contents = [b"", b"age,sex\n1,f\n", b"\x80\x04}q\x00.", (tmp_path / "arrays.npz").read_bytes()]
    contents.append(saved.read_bytes().replace(b"fairpca model", b"another model", 1))
    for content in contents:
        foreign.write_bytes(content)
        with refused(ValueError, "foreign.fairpca'", "no fairpca model"):
            load_model(foreign)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "absent.fairpca")


def test_a_newer_version_is_refused(saved):
    written, newer = (f"model {version} ".encode() for version in (VERSION, VERSION + 1))
    saved.write_bytes(saved.read_bytes().replace(written, newer, 1))
    with refused(ValueError, "model.fairpca'", f"version {VERSION + 1}", "newer"):
        load_model(saved)


def test_every_cut_and_every_changed_byte_is_noticed(saved):
    """A damaged file is refused in one sentence with its name."""
    whole = saved.read_bytes()
    rng = np.random.default_rng(0)
    cuts = [whole[:end] for end in rng.integers(2, len(whole), 100)]
    changed = []
    for position in rng.integers(2, len(whole), 300):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << int(rng.integers(8))
        changed.append(bytes(damaged))
    for damaged in [*cuts, *changed]:
        saved.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"model\.fairpca' (is|has)") as caught:
            load_model(saved)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("groups"),
        lambda header: header.update(preparation=None, arrays={}),
        lambda header: header["preparation"]["columns"].pop(),
        lambda header: header["groups"]["labels"].append("more"),
        lambda header: header["parameters"].update(unknown=1),
        lambda header: header["arrays"].update(mean=[7]),
        lambda header: header["arrays"].update(absent=[0]),
        lambda header: header["certificate"].update(value=[]),
    ],
)
def test_headers_that_do_not_fit_the_arrays_are_refused(saved, change):
    rewritten(saved, change)
    with refused(ValueError, "model.fairpca'", "damaged"):
        load_model(saved)


# Writing


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_while_writing_leaves_what_was_there(tmp_path, failure):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail():
        with replacing(path) as file:
            file.write(b"half")
            raise failure

    with pytest.raises(failure):
        fail()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]


def test_a_model_that_fails_in_the_middle_leaves_the_old_one(fitted, saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(file):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        save_model(fitted[2], saved, preparation=fitted[1])
    assert saved.read_bytes() == before
    assert os.listdir(saved.parent) == [saved.name]


def test_links_stay_links_and_the_mode_is_the_usual_one(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "usual").touch()
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


# --- The subspaces of the training rows ------------------------------------------


def test_subspaces_of_the_training_rows_come_back(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)) * [3, 2, 2, 1, 1]
    groups = rng.integers(0, 2, (200, 2)).astype(str)
    fair = FairPCA(2, groups="both", criterion="minmax").fit(X, sensitive_features=groups)
    path = tmp_path / "model.fairpca"

    save_model(fair, path)
    back = load_model(path).fair_pca
    given = {"sensitive_features": groups[::-1], "baseline": "training"}
    np.testing.assert_array_equal(back.baselines_.own_bases, fair.baselines_.own_bases)
    assert str(audit(back, X, **given)) == str(audit(fair, X, **given))
    fair.baselines_ = None
    save_model(fair, path)
    with refused(ValueError, "without them"):
        audit(load_model(path).fair_pca, X, **given)


def test_subspaces_of_another_shape_are_taken_for_damage(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=np.arange(60) % 2)
    wrong = replace(fair.baselines_, own_bases=fair.baselines_.own_bases[:, :3])
    fair.baselines_ = wrong
    save_model(fair, tmp_path / "model.fairpca")
    with refused(ValueError, "damaged"):
        load_model(tmp_path / "model.fairpca")
