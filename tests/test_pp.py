"""AnnData in, scanpy's slots out; `make cells` runs this, with anndata and scanpy."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import PCA

import fairpca
from fairpca import FairPCA, audit

from texts import refused

anndata = pytest.importorskip("anndata", reason="anndata comes with `make cells`")


def cells(n=400, d=20, sparse=True, seed=0):
    """Some counts of three types in two batches, half of the genes highly variable."""
    rng = np.random.default_rng(seed)
    types = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    rates = rng.gamma(1.0, 1.0, (3, d))[types] * rng.gamma(4.0, 0.25, (n, 1))
    X = np.log1p(rng.poisson(rates)).astype(np.float32)
    adata = anndata.AnnData(scipy.sparse.csr_matrix(X) if sparse else X)
    adata.var_names = [f"gene{j}" for j in range(d)]
    adata.obs["type"] = np.array(["T", "B", "NK"])[types]
    adata.obs["type"] = adata.obs["type"].astype("category")
    adata.obs["batch"] = np.where(rng.random(n) < 0.5, "a", "b")
    adata.var["highly_variable"] = np.arange(d) % 2 == 0
    return adata


@pytest.fixture
def adata():
    return cells()


def dense(adata, genes=slice(None)):
    return adata.X.toarray().astype(np.float64)[:, genes]


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("criterion", ["soft", "minmax"])
def test_the_slots_hold_the_fit_to_the_dense_rows(sparse, criterion):
    adata = cells(sparse=sparse)
    X = adata.X.toarray() if sparse else np.array(adata.X)
    some = adata.var["highly_variable"].to_numpy()
    fair = FairPCA(3, criterion=criterion).fit(
        X.astype(float)[:, some], sensitive_features=adata.obs["type"]
    )
    assert fairpca.pp.pca(adata, key="type", n_comps=3, criterion=criterion) is None
    loadings, about = adata.varm["X_pca_fair"], adata.uns["X_pca_fair"]
    assert adata.obsm["X_pca_fair"].dtype == np.float32
    np.testing.assert_allclose(loadings[some], fair.components_.T, atol=1e-6)
    assert not loadings[~some].any()
    np.testing.assert_allclose(adata.obsm["X_pca_fair"], (X - about["mean"]) @ loadings, atol=1e-5)
    np.testing.assert_allclose(about["variance"], fair.explained_variance_, rtol=1e-6)
    np.testing.assert_allclose(about["variance_ratio"], fair.explained_variance_ratio_, rtol=1e-6)
    assert about["certificate"]["status"] == fair.certificate_.status
    np.testing.assert_allclose(about["certificate"]["value"], fair.certificate_.value, rtol=1e-6)
    np.testing.assert_allclose(about["groups"]["fair loss"], fair.group_table_.loss, rtol=1e-6)
    assert list(about["groups"].index) == ["B", "NK", "T"]
    assert about["params"]["mask_var"] == "highly_variable"


def test_a_file_keeps_all_of_it(adata, tmp_path):
    fairpca.pp.pca(adata, key=["type", "batch"], n_comps=3, groups="both")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(read.obsm["X_pca_fair"], adata.obsm["X_pca_fair"])
    np.testing.assert_array_equal(read.varm["X_pca_fair"], adata.varm["X_pca_fair"])
    given, found = adata.uns["X_pca_fair"], read.uns["X_pca_fair"]
    assert list(found["groups"].index) == list(given["groups"].index)
    np.testing.assert_array_equal(found["groups"].to_numpy(), given["groups"].to_numpy())
    assert found["certificate"]["text"] == given["certificate"]["text"]
    assert set(found["certificate"]) == set(given["certificate"])
    assert list(found["params"]["key"]) == ["type", "batch"]
    np.testing.assert_array_equal(found["variance"], given["variance"])


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("criterion", ["soft", "minmax"])
def test_a_backed_file_is_read_in_blocks(sparse, criterion, tmp_path):
    adata = cells(sparse=sparse)
    path = tmp_path / "cells.h5ad"
    adata.write_h5ad(path)
    given = {"key": "type", "n_comps": 3, "criterion": criterion}
    fairpca.pp.pca(adata, **given)
    backed = anndata.read_h5ad(path, backed="r")
    blocks = []
    read = backed.chunked_X
    backed.chunked_X = lambda size: (blocks.append(b) or b for b in read(size))
    fairpca.pp.pca(backed, **given, chunk_size=90)
    assert [stop - start for _, start, stop in blocks] == 2 * [90, 90, 90, 90, 40]
    np.testing.assert_allclose(backed.varm["X_pca_fair"], adata.varm["X_pca_fair"], atol=1e-6)
    np.testing.assert_allclose(backed.obsm["X_pca_fair"], adata.obsm["X_pca_fair"], atol=1e-5)
    table = fairpca.pp.audit(backed, "type", use_rep="X_pca_fair", n_resamples=0)
    np.testing.assert_allclose(
        table.loss, adata.uns["X_pca_fair"]["groups"]["fair loss"], rtol=1e-5
    )
    backed.file.close()


def test_a_layer_a_name_and_a_precision_can_be_chosen(adata):
    adata.layers["twice"] = adata.X * 2
    fairpca.pp.pca(adata, "type", 2, mask_var=None, layer="twice", key_added="fair")
    fairpca.pp.pca(adata, "type", 2, mask_var=None, dtype="float64")
    twice, plain = adata.uns["fair"], adata.uns["X_pca_fair"]
    np.testing.assert_allclose(twice["variance"], 4 * plain["variance"])
    assert twice["params"]["layer"] == "twice"
    assert adata.obsm["X_pca_fair"].dtype == np.float64


def test_cells_without_a_label_can_be_left_out_of_the_fit(adata):
    adata.obs.loc[adata.obs_names[:30], "type"] = np.nan
    with refused(ValueError, "missing_labels"):
        fairpca.pp.pca(adata, "type", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairpca.pp.pca(adata, "type", 2, missing_labels="drop")
    assert len(adata.obsm["X_pca_fair"]) == 400
    assert adata.uns["X_pca_fair"]["groups"]["rows"].sum() == 370


def test_scanpys_loadings_are_judged(adata):
    some = adata.var["highly_variable"].to_numpy()
    X = dense(adata, some)
    pca = PCA(3).fit(X)
    adata.varm["PCs"] = np.zeros((20, 3))
    adata.varm["PCs"][some] = pca.components_.T
    found = fairpca.pp.audit(adata, "type", random_state=0)
    expected = audit(pca, adata.X[:, some], sensitive_features=adata.obs["type"], random_state=0)
    np.testing.assert_allclose(found.loss, expected.loss)
    np.testing.assert_allclose(found.own_loss, expected.own_loss)
    np.testing.assert_allclose(found.intervals.disparity, expected.intervals.disparity)


def test_new_cells_are_judged_by_the_training_cells(adata):
    new, some = cells(seed=1), adata.var["highly_variable"].to_numpy()
    pca = PCA(3).fit(dense(adata, some))
    adata.varm["PCs"] = np.zeros((20, 3), dtype=np.float32)
    adata.varm["PCs"][some] = pca.components_.T
    found = fairpca.pp.audit(new, "type", adata_train=adata)
    rows = dense(new, some)
    errors = np.square(rows - pca.inverse_transform(pca.transform(rows))).sum(axis=1)
    for label, loss, pca_loss in zip(found.labels, found.loss, found.pca_loss, strict=True):
        assert loss == pytest.approx(errors[new.obs["type"] == label].mean(), rel=1e-5)
        assert pca_loss == pytest.approx(loss, rel=1e-6)
    assert not found.better_off
    assert not found.worse_off
    new.var_names = [f"other{name}" for name in new.var_names]
    with refused(ValueError, "genes"):
        fairpca.pp.audit(new, "type", adata_train=adata)


def test_what_is_missing_is_named(adata):
    with refused(ValueError, "adata.obs", "donor"):
        fairpca.pp.pca(adata, "donor", 2)
    with refused(ValueError, "adata.var", "mask"):
        fairpca.pp.pca(adata, "type", 2, mask_var="mask")
    with refused(ValueError, "mask_var", "True"):
        fairpca.pp.pca(adata, "type", 2, mask_var=np.arange(20))
    adata.obsm["X_pca_harmony"] = np.zeros((400, 2))
    with refused(ValueError, "X_pca_harmony", "Harmony"):
        fairpca.pp.audit(adata, "type", use_rep="X_pca_harmony")


@pytest.mark.parametrize(
    "use",
    [
        lambda adata: FairPCA(2).fit(adata, sensitive_features="type"),
        lambda adata: FairPCA(2).fit(adata),
        lambda adata: fairpca.compare(adata, sensitive_features="type", n_components=2),
        lambda adata: audit(PCA(2).fit(dense(adata)), adata, sensitive_features="type"),
    ],
)
def test_others_say_what_to_type(use, adata):
    with refused(TypeError, "fairpca.pp.pca(adata, key="):
        use(adata)


def test_scanpy_takes_the_representation(adata):
    sc = pytest.importorskip("scanpy", reason="scanpy comes with `make cells`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairpca.pp.pca(adata, key="type", n_comps=3)
        sc.pp.neighbors(adata, n_neighbors=10, use_rep="X_pca_fair")
        sc.pp.pca(adata, n_comps=3)
    assert adata.obsp["connectivities"].shape == (400, 400)
    ours, theirs = adata.uns["X_pca_fair"], adata.uns["pca"]
    assert set(theirs) <= set(ours)
    assert set(theirs["params"]) <= set(ours["params"])
    assert adata.obsm["X_pca"].dtype == adata.obsm["X_pca_fair"].dtype
    # Ordinary PCA in the same slots: of one group fair PCA is that.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fairpca.pp.pca(adata, key="type", n_comps=3, groups=None, key_added="one")
    np.testing.assert_allclose(np.abs(adata.obsm["one"]), np.abs(adata.obsm["X_pca"]), atol=1e-3)
    np.testing.assert_allclose(adata.uns["one"]["variance"], theirs["variance"], rtol=1e-4)
