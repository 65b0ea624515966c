"""
Cells: from counts to neighbours, clusters and UMAP
===================================================

In single-cell analysis, neighbours, clusters and UMAP are computed from a PCA of the counts.
``fairpca.pp.pca`` replaces it in scanpy. The counts here are simulated: 5 % of the cells are of
two rare types, each with its own gene programmes.
"""

# %%
# The example needs scanpy, which the project does not install: ``pip install scanpy leidenalg
# "fairpca[anndata]"``, or ``make cells``. Without it nothing is run.
from importlib.util import find_spec
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from sklearn.neighbors import NearestNeighbors

from fairpca import pp

HAS_SCANPY = find_spec("scanpy") is not None

# %%
# The counts
# ----------
# There are five types, of 50, 30, 15, 3 and 2 % of the cells. They share four gene programmes that
# vary from cell to cell, and each type has three more.
rng = np.random.default_rng(0)
names, shares = np.array(["T", "B", "mono", "NK", "pDC"]), [0.5, 0.3, 0.15, 0.03, 0.02]
n, d = 2000, 1000


def programmes(k: int) -> np.ndarray:
    """Changes of a twelfth of the genes, on a logarithmic scale."""
    return np.asarray(rng.normal(0.0, 0.6, (k, d)) * (rng.random((k, d)) < 1 / 12))


types = rng.choice(5, n, p=shares)
base, marked, shared = rng.gamma(0.6, 1.0, d) + 0.02, 1.5 * programmes(5), programmes(4)
own = np.stack([programmes(3) for _ in names])
activity = rng.normal(size=(n, 4)) @ shared
activity += np.einsum("ij,ijk->ik", rng.normal(size=(n, 3)), own[types])
rates = base * np.exp(marked[types] + activity)
counts = rng.poisson(2000.0 * rates / rates.sum(axis=1, keepdims=True)).astype(np.float32)

# %%
# From counts to clusters
# -----------------------
# The ordinary and the fair representation are in separate slots, and later steps choose one by
# ``use_rep``. The groups are the types here; in practice they are a first annotation, the batch or
# the donor.


def analysed(counts: np.ndarray, labels: np.ndarray) -> Any:
    """An AnnData with both representations, and with neighbours, clusters and UMAP of each."""
    import anndata
    import scanpy as sc

    adata = anndata.AnnData(counts)
    adata.obs["type"] = labels
    sc.pp.normalize_total(adata)
    sc.pp.log1p(adata)
    sc.pp.highly_variable_genes(adata, n_top_genes=500)
    sc.pp.pca(adata, n_comps=8)
    pp.pca(adata, key="type", n_comps=8)
    for rep in ("X_pca", "X_pca_fair"):
        graph = f"neighbors {rep}"
        sc.pp.neighbors(adata, use_rep=rep, key_added=graph)
        sc.tl.leiden(adata, neighbors_key=graph, key_added=f"leiden {rep}", flavor="igraph")
        sc.tl.umap(adata, neighbors_key=graph)
        adata.obsm[f"UMAP of {rep}"] = adata.obsm["X_umap"]
    return adata


# %%
# What each type loses, and whether its cells find each other
# ------------------------------------------------------------
# ``pp.audit`` judges the loadings that scanpy has stored. The recall of a type is the share of its
# cells most of whose ten nearest neighbours are of that type. These are the cells of the fit. On
# held-out cells the gain is smaller: :doc:`/studies/cells` has the figures.


def recalls(Z: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """The share of the cells of each type whose neighbours are mostly of that type."""
    near = NearestNeighbors(n_neighbors=10).fit(Z).kneighbors(return_distance=False)
    own = (labels[near] == labels[:, None]).mean(axis=1) > 0.5
    return {name: float(own[labels == name].mean()) for name in names}


def shown(adata: Any) -> None:
    """Print the tables, and draw both UMAPs."""
    print(pp.audit(adata, key="type"), end="\n\n")
    print(adata.uns["X_pca_fair"]["certificate"]["text"], end="\n\n")
    labels = np.asarray(adata.obs["type"])
    _, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for ax, rep in zip(axes, ("X_pca", "X_pca_fair"), strict=True):
        found = recalls(adata.obsm[rep], labels)
        clusters = adata.obs[f"leiden {rep}"].nunique()
        texts = ", ".join(f"{name} {100 * share:.0f} %" for name, share in found.items())
        print(f"{rep}: {clusters} clusters; recall: {texts}")
        for name in names:
            points = adata.obsm[f"UMAP of {rep}"][labels == name]
            ax.scatter(*points.T, s=4, label=name)
        ax.set(title=f"UMAP of {rep}", xticks=[], yticks=[])
    axes[-1].legend(markerscale=3)


if HAS_SCANPY:
    shown(analysed(counts, names[types]))
else:
    print("scanpy is not installed, so nothing was run: pip install scanpy leidenalg anndata")
    plt.figure(figsize=(5, 1)).text(0.1, 0.4, "scanpy is not installed")
plt.show()
