"""Moments in files and sums of very many of them."""

import datetime
import decimal
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from fairpca import GroupMoments
from fairpca.groups import MISSING
from fairpca.model_file import load_model
from studies.file_mutations import with_header

from texts import refused

RNG_ROWS = np.random.default_rng(0).normal(size=(40, 3)) * [1e-8, 1.0, 1e8] + [0.0, 1e6, 3.0]


def saved_and_loaded(moments, folder):
    moments.save(folder / "a.moments")
    return GroupMoments.load(folder / "a.moments")


def assert_identical(left, right):
    assert left.labels == right.labels
    assert [type(label) for label in left.labels] == [type(label) for label in right.labels]
    assert left.feature_names == right.feature_names
    for name in ("count", "weight", "mean", "scatter"):
        mine, other = getattr(left, name), getattr(right, name)
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize(
    "labels",
    [
        ["f", "m"],
        [1, 2],
        [False, True],
        [0.1, float("inf")],
        ["ü\n\u2028\x00", MISSING],
        [datetime.date(2020, 1, 2), datetime.date(1999, 12, 31)],
        [datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.datetime(2021, 1, 1)],
        [decimal.Decimal("1.10"), decimal.Decimal("-2")],
    ],
    ids=str,
)
def test_labels_of_every_kind_come_back(labels, tmp_path):
    moments = GroupMoments.from_rows(RNG_ROWS, np.array(labels * 20, dtype=object))
    loaded = saved_and_loaded(moments, tmp_path)
    assert_identical(loaded, moments)
    assert (loaded + moments).count.tolist() == [40, 40]


def test_intersections_names_and_weights_come_back(tmp_path):
    frame = pd.DataFrame(RNG_ROWS, columns=["a", "b", "Größe"])
    groups = pd.DataFrame({"sex": ["f", "m"] * 20, "old": [True, False, False, None] * 10})
    weights = np.random.default_rng(1).exponential(size=40)
    moments = GroupMoments.from_rows(frame, groups, sample_weight=weights, missing_labels="group")
    assert moments.labels[-1] == ("m", MISSING)
    loaded = saved_and_loaded(moments, tmp_path)
    assert_identical(loaded, moments)
    assert loaded.labels[0] == ("f", False)


def test_labels_that_no_file_can_keep_become_texts(tmp_path):
    moments = GroupMoments.from_rows(RNG_ROWS, np.array([b"x", b"y"] * 20, dtype=object))
    moments.save(tmp_path / "a.moments")
    assert GroupMoments.load(tmp_path / "a.moments").labels == ("b'x'", "b'y'")


def test_moments_that_are_not_finite_are_not_saved(tmp_path):
    moments = GroupMoments.from_rows(RNG_ROWS)
    moments.scatter[0, 0, 0] = np.inf
    with refused(ValueError, "not finite"):
        moments.save(tmp_path / "a.moments")


def test_a_file_is_whole_or_as_it_was(tmp_path, monkeypatch):
    first = GroupMoments.from_rows(RNG_ROWS)
    first.save(tmp_path / "a.moments")

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            (first + first).save(tmp_path / "a.moments")
    assert os.listdir(tmp_path) == ["a.moments"]
    assert_identical(GroupMoments.load(tmp_path / "a.moments"), first)


def test_a_file_cut_anywhere_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "a.moments"
    GroupMoments.from_rows(RNG_ROWS, ["f", "m"] * 20).save(path)
    data = path.read_bytes()
    for length in range(0, len(data), 97):
        path.write_bytes(data[:length])
        with refused(ValueError, "a.moments'") as caught:
            GroupMoments.load(path)
        assert "\n" not in str(caught.value)


def test_a_changed_byte_anywhere_is_noticed(tmp_path):
    path = tmp_path / "a.moments"
    GroupMoments.from_rows(RNG_ROWS, ["f", "m"] * 20).save(path)
    data = path.read_bytes()
    for place in range(0, len(data), 41):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0x11]) + data[place + 1 :])
        with pytest.raises(ValueError, match=r"a\.moments' (is|has)"):
            GroupMoments.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h: h.update(labels=["f"]), "no labels 2 groups"),
        (lambda h: h.update(labels=["f", "f"]), "two groups same label"),
        (lambda h: h.update(labels=[{"pickle": "x"}, "f"]), "parts fit together"),
        (lambda h: h.update(feature_names=["x"]), "feature_names 1 3"),
        (lambda h: h.pop("labels"), "parts fit together"),
        (lambda h: h["arrays"].pop("mean"), "more numbers than its arrays"),
    ],
)
def test_other_headers_are_refused(change, words, tmp_path):
    path = tmp_path / "a.moments"
    GroupMoments.from_rows(RNG_ROWS, ["f", "m"] * 20).save(path)
    path.write_bytes(with_header(change)(path.read_bytes()))
    with refused(ValueError, *words.split()):
        GroupMoments.load(path)


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "a.moments"
    for data in (b"", b"PK", b"hello", b"\x80\x04pickle"):
        path.write_bytes(data)
        with refused(ValueError, "a.moments' is"):
            GroupMoments.load(path)
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    with refused(ValueError, "no file of moments"):
        GroupMoments.load(tmp_path / "b.npz")
    GroupMoments.from_rows(RNG_ROWS).save(path)
    with refused(ValueError, "no fairpca model"):
        load_model(path)
    with pytest.raises(FileNotFoundError):
        GroupMoments.load(tmp_path / "c.moments")


# --- Standardised columns -----------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_standardized_moments_are_those_of_standardised_rows(weighted):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 5)) * [1e-8, 1.0, 1e8, 0.0, 0.0] + [0.0, 1e3, 1e9, 0.1, 0.0]
    groups = rng.integers(0, 3, 200)
    weights = rng.exponential(size=200) if weighted else None
    if weighted:  # where StandardScaler itself stumbles over equal numbers
        scaled = X - np.average(X, axis=0, weights=weights)
        scaled[:, :3] /= np.sqrt(np.average(scaled[:, :3] ** 2, axis=0, weights=weights))
    else:
        scaled = StandardScaler().fit_transform(X)
    scaled[:, 3] = 0.0  # equal numbers, which their mean misses by rounding
    reference = GroupMoments.from_rows(scaled, groups, sample_weight=weights)
    moments = GroupMoments.from_rows(X, groups, sample_weight=weights)
    before = moments.scatter.copy()
    standardized = moments.standardized()
    np.testing.assert_allclose(standardized.mean, reference.mean, atol=1e-11)
    np.testing.assert_allclose(standardized.scatter, reference.scatter, atol=1e-9)
    np.testing.assert_array_equal(standardized.weight, moments.weight)
    np.testing.assert_array_equal(moments.scatter, before)


# --- Sums of many -------------------------------------------------------------


def test_merging_many_parts_is_adding_them_and_leaves_them_alone():
    rng = np.random.default_rng(3)
    X, groups = rng.normal(size=(400, 3)) + 1e4, rng.integers(0, 5, 400)
    parts = [GroupMoments.from_rows(X[i : i + 7], groups[i : i + 7]) for i in range(0, 400, 7)]
    copies = [part.scatter.copy() for part in parts]
    merged = GroupMoments.merge(parts)
    added = parts[0]
    for part in parts[1:]:
        added = added + part
    assert_identical(merged, added)
    for part, copy in zip(parts, copies, strict=True):
        np.testing.assert_array_equal(part.scatter, copy)
    whole = GroupMoments.from_rows(X, groups)
    np.testing.assert_allclose(merged.scatter, whole.scatter, rtol=1e-9, atol=1e-9)
    assert_identical(GroupMoments.merge([parts[0]]), parts[0])


def test_merging_a_thousand_parts_takes_the_memory_of_a_few():
    d = 100
    part = GroupMoments.from_rows(np.random.default_rng(0).normal(size=(2 * d, d)))
    tracemalloc.start()
    try:
        GroupMoments.merge(part for _ in range(1000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * part.scatter.nbytes


def test_what_cannot_be_merged():
    with refused(ValueError, "parts", "empty"):
        GroupMoments.merge([])
    three, two = GroupMoments.from_rows(RNG_ROWS), GroupMoments.from_rows(RNG_ROWS[:, :2])
    with refused(ValueError, "3 and of 2 columns"):
        GroupMoments.merge([three, two])


def test_intersections_keep_their_order_when_merged():
    groups = pd.DataFrame({"a": [1, None, 2, 1], "b": ["u", "v", None, "v"]}, dtype=object)
    whole = GroupMoments.from_rows(RNG_ROWS[:4], groups, missing_labels="group")
    parts = [
        GroupMoments.from_rows(RNG_ROWS[i : i + 1], groups.iloc[i : i + 1], missing_labels="group")
        for i in (3, 1, 2, 0)
    ]
    assert GroupMoments.merge(parts).labels == whole.labels


def test_bytes_are_those_of_the_file_and_come_back(tmp_path):
    rng = np.random.default_rng(3)
    moments = GroupMoments.from_rows(rng.normal(size=(20, 3)), [("f", 1), ("m", 2)] * 10)
    assert_identical(GroupMoments.from_bytes(moments.to_bytes()), moments)
    sent = tmp_path / "sent.moments"
    sent.write_bytes(moments.to_bytes())
    assert_identical(GroupMoments.load(sent), moments)


def test_bytes_that_are_damaged_or_no_moments_are_refused():
    moments = GroupMoments.from_rows(np.eye(3))
    data = moments.to_bytes()
    with refused(ValueError, "sent", "no file of moments"):
        GroupMoments.from_bytes(b"moments")
    for end in range(data.index(b"\n") + 1, len(data), 7):
        with refused(ValueError, "sent", "damaged"):
            GroupMoments.from_bytes(data[:end])
    changed = data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]
    with refused(ValueError, "sent", "damaged"):
        GroupMoments.from_bytes(changed)
    endless = GroupMoments(
        ("a",), np.ones(1, int), np.ones(1), np.full((1, 1), np.inf), np.ones((1, 1, 1))
    )
    with refused(ValueError, "not finite", "sent"):
        endless.to_bytes()
