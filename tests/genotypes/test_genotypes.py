"""Genotypes: the same fit as of all scaled variants at once, from every kind of source."""

import sys

import numpy as np
import pandas as pd
import pytest

from fairpca import FairPCA, MinMax
from fairpca.genotypes import GenotypePCA, Genotypes

from texts import refused

SIZES, D = (60, 25, 15), 1500
GROUPS = np.repeat(["a", "b", "c"], SIZES)
CRITERIA = ("minmax", "balanced", MinMax("share_lost"))


def dosages(seed=0, missing=0.03):
    """Three populations with frequencies of their own; a few variants are alike in everybody."""
    rng = np.random.default_rng(seed)
    frequencies = np.random.default_rng(99)
    ancestral = frequencies.uniform(0.05, 0.95, D)
    p = np.clip(ancestral + 0.12 * frequencies.normal(size=(3, D)), 0.01, 0.99)
    calls = rng.binomial(2, np.repeat(p, SIZES, axis=0)).astype(float)
    calls[:, :4] = 0.0
    calls[:, 4] = 2.0
    calls[rng.random(calls.shape) < missing] = np.nan
    return calls


def scaled(calls, of=None):
    """Patterson's scaling with the frequencies of some people, with nan for missing calls."""
    p = np.nanmean(calls if of is None else of, axis=0) / 2
    deviation = np.sqrt(p * (1 - p))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(deviation > 0, (calls - 2 * p) / deviation, 0.0)


@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
def test_the_fit_is_that_of_all_scaled_variants(criterion):
    calls = dosages()
    fair = FairPCA(3, criterion=criterion)
    model = GenotypePCA(fair, batch_size=371).fit(calls, GROUPS)
    whole = FairPCA(3, criterion=criterion, missing_values="mean")
    columns = scaled(calls)
    whole.fit(columns, sensitive_features=GROUPS)
    one, other = model.fair_pca_.components_, whole.components_
    np.testing.assert_allclose(one.T @ (one @ other.T), other.T, atol=1e-10)
    np.testing.assert_allclose(model.fair_pca_.explained_variance_, whole.explained_variance_)
    np.testing.assert_allclose(model.group_table_.loss, whole.group_table_.loss)
    np.testing.assert_allclose(model.group_table_.disparity, whole.group_table_.disparity)
    assert model.missing_share_ == pytest.approx(np.isnan(calls).mean())
    assert (one[:, :5] == 0.0).all()
    # New people, by least squares on the variants that were called.
    people = dosages(seed=1, missing=0.3)[::7]
    reduced = model.transform(people)
    for row, scores in zip(scaled(people, calls), reduced, strict=True):
        there = ~np.isnan(row)
        expected = np.linalg.lstsq(one[:, there].T, row[there], rcond=None)[0]
        np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_the_default_criterion_differs_by_its_folds_alone():
    calls = dosages()
    model = GenotypePCA(FairPCA(2)).fit(calls, GROUPS)
    other = FairPCA(2, missing_values="mean").fit(scaled(calls), sensitive_features=GROUPS)
    assert model.group_table_.held_out is not None
    np.testing.assert_allclose(model.group_table_.loss, other.group_table_.loss, rtol=0.01)


def test_without_groups_it_is_patterson_pca_as_scikit_allel_has_it():
    allel = pytest.importorskip("allel")
    calls = dosages(missing=0.0)
    varying = calls[:, calls.std(axis=0) > 0]
    expected, _ = allel.pca(varying.T, n_components=3, scaler="patterson")
    model = GenotypePCA(FairPCA(3, groups=None)).fit(calls)
    np.testing.assert_allclose(np.abs(model.transform(calls)), np.abs(expected), atol=1e-8)


def test_rows_that_are_left_out_do_not_count():
    calls = dosages(missing=0.0)
    labels = np.where(np.arange(100) % 10 == 0, None, GROUPS.astype(object))
    fair = FairPCA(2, criterion="minmax", missing_labels="drop")
    with pytest.warns(UserWarning, match="10 of 100"):
        model = GenotypePCA(fair).fit(calls, labels)
    with pytest.warns(UserWarning, match="10 of 100"):
        other = fair.fit(scaled(calls), sensitive_features=labels)
    np.testing.assert_allclose(model.fair_pca_.mean_, other.mean_, atol=1e-10)
    np.testing.assert_allclose(
        np.abs(model.transform(calls)), np.abs(other.transform(scaled(calls))), atol=1e-9
    )


def _small(calls):
    return np.where(np.isnan(calls), -1, calls).astype(np.int8)


def _alleles(calls):
    """Calls of two chromosomes, by variant; of missing ones, the second is."""
    first, second = (calls > 0).astype(np.int8), (calls > 1).astype(np.int8)
    second[np.isnan(calls)] = -1
    return np.stack([first.T, second.T], axis=2)


def _bed(calls, folder):
    bed_reader = pytest.importorskip("bed_reader")
    names = [f"p{i}" for i in range(len(calls))]
    properties = {"iid": names, "fid": GROUPS}
    bed_reader.to_bed(folder / "people.bed", calls, properties=properties)
    return folder / "people.bed"


def _zarr(calls, folder):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(folder / "people.vcz"), mode="w", zarr_format=2)
    group["call_genotype"] = _alleles(calls)
    names = group.create_array("sample_id", shape=len(calls), dtype=str)
    names[:] = np.array([f"p{i}" for i in range(len(calls))], dtype=object)
    return group


def _xarray(calls, folder):
    xarray = pytest.importorskip("xarray")
    return xarray.Dataset(
        {
            "call_genotype": (("variants", "samples", "ploidy"), _alleles(calls)),
            "sample_id": ("samples", [f"p{i}" for i in range(len(calls))]),
        }
    )


SOURCES = {
    "small integers": lambda calls, folder: _small(calls),
    "lists": lambda calls, folder: calls.tolist(),
    "frame": lambda calls, folder: pd.DataFrame(calls, index=[f"p{i}" for i in range(100)]),
    "PLINK": _bed,
    "VCF Zarr": _zarr,
    "dataset": _xarray,
}


@pytest.mark.parametrize("kind", SOURCES)
def test_sources(kind, tmp_path):
    calls = dosages()
    source = SOURCES[kind](calls, tmp_path)
    fair = FairPCA(2, criterion="minmax")
    expected = GenotypePCA(fair).fit(calls, GROUPS)
    assert Genotypes(source).shape == calls.shape
    np.testing.assert_array_equal(Genotypes(source).read(slice(30, 60)), calls[:, 30:60])
    model = GenotypePCA(fair, batch_size=700).fit(source, GROUPS)
    np.testing.assert_allclose(model.frequency_, expected.frequency_)
    found = model.transform(source)
    np.testing.assert_allclose(np.abs(found), np.abs(expected.transform(calls)), atol=1e-8)
    if Genotypes(source).people is not None:
        # More people than there are, in another order.
        names = [f"p{i}" for i in range(120)]
        table = pd.Series([*GROUPS, *["z"] * 20], index=names)[::-1]
        again = GenotypePCA(fair).fit(source, table)
        np.testing.assert_allclose(again.group_table_.loss, expected.group_table_.loss)
    if kind == "PLINK":
        again = GenotypePCA(fair).fit(source, Genotypes(source).families)
        np.testing.assert_allclose(again.group_table_.loss, expected.group_table_.loss)


def test_labels_by_position_where_no_name_is_known():
    calls = pd.DataFrame(dosages(), index=[f"p{i}" for i in range(100)])
    fair = GenotypePCA(FairPCA(2, criterion="minmax"))
    one, other = (
        fair.fit(calls, GROUPS).group_table_,
        fair.fit(calls, pd.Series(GROUPS)).group_table_,
    )
    np.testing.assert_array_equal(one.loss, other.loss)


def test_what_cannot_be_read_is_refused():
    calls, fair = dosages(), GenotypePCA(FairPCA(2, criterion="minmax"))
    frame = pd.DataFrame(calls, index=[f"p{i}" for i in range(100)])
    with refused(ValueError, "from 0 to 2", "3"):
        fair.fit(calls + 1.0, GROUPS)
    with refused(ValueError, "row", "dimensions"):
        Genotypes(calls[0])
    with refused(ValueError, "call_genotype"):
        Genotypes({"calls": calls})
    with refused(ValueError, "diploid"):
        Genotypes({"call_genotype": np.zeros((5, 4, 1), np.int8)}).read(slice(0, 5))
    with refused(ValueError, "no label", "p99"):
        fair.fit(frame, pd.Series(GROUPS[:99], index=frame.index[:99]))
    with refused(ValueError, "one person"):
        fair.fit(frame, pd.Series(GROUPS, index=["p1", *frame.index[1:]]))
    with refused(ValueError, "No variant varies"):
        fair.fit(np.zeros((100, 30)), GROUPS)
    with refused(ValueError, "1499 variants", "1500"):
        fair.fit(calls, GROUPS).transform(calls[:, 1:])
    with refused(ValueError, "batch_size"):
        GenotypePCA(FairPCA(2), batch_size=0).fit(calls, GROUPS)
    few = GenotypePCA(FairPCA(4, criterion="minmax"))
    with refused(ValueError, "no person varies"):
        few.fit(calls[[0, 1, 60, 61]], GROUPS[[0, 1, 60, 61]])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "bed_reader", None)
    with refused(ImportError, "bed-reader", "fairpca[genotypes]"):
        Genotypes("people.bed")


def test_whitening():
    model = GenotypePCA(FairPCA(2, criterion="minmax", whiten=True)).fit(dosages(), GROUPS)
    plain = GenotypePCA(FairPCA(2, criterion="minmax")).fit(dosages(), GROUPS)
    scale = np.sqrt(plain.fair_pca_.explained_variance_)
    found, expected = model.transform(dosages()), plain.transform(dosages())
    np.testing.assert_allclose(np.abs(found) * scale, np.abs(expected), atol=1e-9)
