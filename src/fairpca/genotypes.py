"""Genotypes: fair PCA of hundreds of thousands of variants, exact, in the space of the people.

Variants are read in batches: from PLINK's .bed files, VCF Zarr, datasets of xarray as sgkit has
them, and NumPy. A variant's dosages, g, have the frequency p of the counted allele, and become
``(g - 2p) / sqrt(p (1 - p))`` (Patterson, Price and Reich, 2006); missing calls are zeros, the
mean. One pass sums up ``K = Z Z^T``, (n, n). With ``K = V diag(l) V^T`` the people have the
coordinates ``V diag(l)^(1/2)`` in the space that they span, which is where the problem is solved,
as for other rows with more columns than rows; ``Z^T V diag(l)^(-1/2)``, in another pass, takes the
components back to the variants. New people are fitted by least squares on the variants that were
called, as smartpca's lsqproject does.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from fairpca._linalg.dense import fix_signs
from fairpca._linalg.projection import least_squares, missing_products
from fairpca._linalg.types import Array
from fairpca.data import prepare_data
from fairpca.fair_pca import FairPCA, checked_choices
from fairpca.group_table import GroupTable
from fairpca.text import listed
from fairpca.validation import check_whole_number

_PLOIDY = 2

_ROUNDING = 1e-11
"""Part of the largest eigenvalue of K that may be rounding."""


class Genotypes:
    """Dosages of people, a batch of variants at a time.

    Parameters
    ----------
    source : str, Path, array-like of shape (n_people, n_variants), Zarr group or xarray Dataset
        A .bed file with its .bim and .fam beside it (which needs the extra
        ``fairpca[genotypes]``); VCF Zarr as an open group, or a dataset of xarray, with sgkit's
        ``call_genotype`` or ``call_dosage``; or dosages as an array, also a memory-mapped one, or
        a data frame, from 0 to 2, with negative numbers or nan for missing calls.

    Attributes
    ----------
    shape : pair of int
        People and variants.
    people : array of str, or None
        Names of the people, where the source has them.
    families : array of str, or None
        Family identifiers of a .fam file, which often are populations.

    See Also
    --------
    fairpca.genotypes.GenotypePCA : Is fitted to them.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca.genotypes import Genotypes
    >>> genotypes = Genotypes(np.array([[0, 1, 2], [2, -1, 1]], dtype=np.int8))
    >>> genotypes.read(slice(0, 2))
    array([[ 0.,  1.],
           [ 2., nan]])
    """

    people: NDArray[Any] | None = None
    families: NDArray[Any] | None = None

    def __init__(self, source: Any) -> None:
        self._by_variant = False
        if isinstance(source, str | Path):
            try:
                from bed_reader import open_bed
            except ImportError as error:
                raise ImportError(
                    "PLINK files need bed-reader: install `fairpca[genotypes]`."
                ) from error
            self._calls = open_bed(source)
            self.people, self.families = self._calls.iid, self._calls.fid
        elif hasattr(source, "iloc"):
            self._calls, self.people = source.to_numpy(), source.index.to_numpy()
        elif hasattr(source, "keys"):
            name = "call_genotype" if "call_genotype" in source else "call_dosage"
            if name not in source:
                kind = type(source).__name__
                raise ValueError(f"X is a {kind} without call_genotype and without call_dosage.")
            self._calls, self._by_variant = source[name], True
            self.people = np.asarray(source["sample_id"]) if "sample_id" in source else None
        else:
            self._calls = source if hasattr(source, "shape") else np.asarray(source)
        shape = tuple(self._calls.shape)
        if len(shape) != 2 and not self._by_variant:
            raise ValueError(
                "Dosages must have a row for each person and a column for each variant, got an "
                f"array with {len(shape)} dimensions."
            )
        self.shape: tuple[int, int] = (shape[1], shape[0]) if self._by_variant else shape

    def read(self, some: slice) -> Array:
        """Dosages of some variants; missing calls are nan.

        Parameters
        ----------
        some : slice
            Of the variants.

        Returns
        -------
        array of shape (n_people, n_some)
        """
        if self.families is not None:
            return np.asarray(self._calls.read(np.s_[:, some], dtype="float64", order="F"))
        calls = np.asarray(self._calls[some] if self._by_variant else self._calls[:, some])
        if calls.ndim == 3:  # a call for each chromosome, of which all but 0 are the other allele
            missing = (calls < 0).any(axis=2)
            if calls.shape[2] != _PLOIDY:
                raise ValueError(f"Calls must be diploid, got {calls.shape[2]} chromosomes.")
            calls = np.where(missing, np.nan, (calls > 0).sum(axis=2))
        calls = np.array(calls.T if self._by_variant else calls, dtype=np.float64, order="F")
        calls[calls < 0] = np.nan
        if (calls > _PLOIDY).any():
            raise ValueError(
                f"Dosages must be from 0 to {_PLOIDY}, and one of the variants {some.start} to "
                f"{some.stop} has {np.nanmax(calls):g}."
            )
        return calls


class GenotypePCA(BaseEstimator):
    """Fair PCA of genotypes with Patterson's scaling, for thousands of people.

    The result is that of the `FairPCA` on all scaled variants at once, while only a batch of them
    and a few matrices of (n_people, n_people) are in memory. (The default criterion assigns people
    to other folds, so its temperature differs a little.)

    Parameters
    ----------
    fair_pca : FairPCA
        What is fitted, with the number of components and the criterion.
    batch_size : int, default=2000
        Variants that are read at once.

    Attributes
    ----------
    fair_pca_ : FairPCA
        The fitted one, in the scaled variants: `components_` has a column for each.
    group_table_ : GroupTable
        What each group loses. Print it.
    frequency_ : array of shape (n_variants,)
        Of the counted allele among the people of the fit. Variants without variation are left
        out: their components are zeros.
    missing_share_ : float
        Share of missing calls, which were taken for the mean.

    See Also
    --------
    fairpca.FairPCA : With ``missing_values="mean"`` for other tables with gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import FairPCA
    >>> from fairpca.genotypes import GenotypePCA
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.1, 0.9, (2, 3000))
    >>> people = rng.binomial(2, np.repeat(p, [60, 20], axis=0)).astype(np.int8)
    >>> people[rng.random(people.shape) < 0.02] = -1
    >>> model = GenotypePCA(FairPCA(2)).fit(people, ["here"] * 60 + ["there"] * 20)
    >>> round(model.missing_share_, 3)
    0.02
    >>> model.transform(people[:5]).shape
    (5, 2)
    """

    def __init__(self, fair_pca: FairPCA, *, batch_size: int = 2000) -> None:
        self.fair_pca = fair_pca
        self.batch_size = batch_size

    fair_pca_: FairPCA
    group_table_: GroupTable
    frequency_: Array
    missing_share_: float

    def fit(self, X: Any, sensitive_features: Any = None) -> Self:
        """Find the fair subspace of these people.

        Parameters
        ----------
        X : Genotypes, or its source
            The people.
        sensitive_features : array-like of shape (n_people,), Series or data frame
            The group of each person, such as ``families`` of `Genotypes`. A series or a frame of
            pandas whose index has the names of the people may have others too, in any order.

        Returns
        -------
        self : GenotypePCA
        """
        _, criterion = checked_choices(self.fair_pca)
        check_whole_number("batch_size", self.batch_size)
        genotypes = X if isinstance(X, Genotypes) else Genotypes(X)
        labels = _labels(sensitive_features, genotypes)
        n, d = genotypes.shape
        frequency, n_missing, products = (
            np.full(d, np.nan),
            np.zeros(n),
            np.zeros((n, n), order="F"),
        )
        for some in self._batches(d):
            dosages = genotypes.read(some)
            missing = np.isnan(dosages)
            n_missing += missing.sum(axis=1)
            sums, known = np.nansum(dosages, axis=0), n - missing.sum(axis=0)
            np.divide(sums, _PLOIDY * known, out=frequency[some], where=known > 0)
            scaled = _scaled(dosages, frequency[some])
            scaled[missing] = 0.0
            products = dsyrk(1.0, scaled, 1.0, products, overwrite_c=1)
        space: Any = _PeopleSpace(products, genotypes, self._batches(d), frequency)
        held_out = self.fair_pca.groups is not None and criterion.estimates_noise
        folds = "needed" if held_out and labels is not None else None
        options: dict[str, Any] = {"missing_labels": self.fair_pca.missing_labels, "folds": folds}
        grouped_data = prepare_data(space.rows, labels, **options)
        grouped_data = replace(grouped_data, space=space, n_missing=n_missing, rows=None)
        fitted: FairPCA = clone(self.fair_pca).fit_data(grouped_data)
        self.fair_pca_, self.group_table_ = fitted, fitted.group_table_
        self.frequency_, self.missing_share_ = frequency, float(n_missing.mean() / d)
        return self

    def transform(self, X: Any) -> Array:
        """Project people on the components, by least squares on the variants that were called.

        Parameters
        ----------
        X : Genotypes, or its source
            People with the variants of the fit.

        Returns
        -------
        array of shape (n_people, n_components_)
        """
        check_is_fitted(self)
        genotypes = X if isinstance(X, Genotypes) else Genotypes(X)
        (n, d), fair = genotypes.shape, self.fair_pca_
        if d != len(self.frequency_):
            raise ValueError(
                f"There are {d} variants, but this GenotypePCA was fitted to "
                f"{len(self.frequency_)}: choose the same ones, in the same order."
            )
        axes = fair.components_
        scores, products = np.zeros((n, len(axes))), np.tile(axes @ axes.T, (n, 1, 1))
        for some in self._batches(d):
            scaled = _scaled(genotypes.read(some), self.frequency_[some]) - fair.mean_[some]
            missing = np.isnan(scaled)
            scaled[missing] = 0.0
            scores += scaled @ axes[:, some].T
            gaps = scipy.sparse.csr_matrix(missing, dtype=np.float64)
            products -= missing_products(gaps, axes[:, some])
        scores, factors = least_squares(products, scores), fair._projection.factors
        return scores if factors is None else scores * factors

    def _batches(self, d: int) -> list[slice]:
        return [slice(i, min(i + self.batch_size, d)) for i in range(0, d, self.batch_size)]


class _PeopleSpace:
    """The space that people span, as `fairpca.moments.row_space.RowSpace` has it for rows."""

    def __init__(
        self, products: Array, genotypes: Genotypes, batches: list[slice], frequency: Array
    ) -> None:
        values, turn = np.linalg.eigh(products, UPLO="U")
        some = values > _ROUNDING * values[-1]
        if not some.any():
            raise ValueError("No variant varies among these people.")
        self._roots, turn = np.sqrt(values[some][::-1]), fix_signs(turn[:, some][:, ::-1])
        self.rows: Array = turn * self._roots
        self._turn, self._genotypes, self._batches = turn, genotypes, batches
        self._frequency, self.d = frequency, len(frequency)

    def lift(self, basis: Array) -> Array:
        """Vectors in the coordinates of `rows` as columns with an entry for each variant."""
        k = len(self._roots)
        if np.abs(basis[k:]).max(initial=0.0) > np.sqrt(_ROUNDING):
            raise ValueError(
                "The subspace has directions in which no person varies, which is not supported for "
                "genotypes: take fewer components, or criterion 'soft', 'minmax' or 'balanced'."
            )
        weights = self._turn @ (basis[:k] / self._roots[:, None])
        lifted = np.empty((self.d, basis.shape[1]))
        for some in self._batches:
            scaled = np.nan_to_num(_scaled(self._genotypes.read(some), self._frequency[some]))
            lifted[some] = scaled.T @ weights
        return lifted

    def lift_point(self, point: Array) -> Array:
        """A point in those coordinates, in the scaled variants."""
        if np.abs(point).max() <= np.sqrt(_ROUNDING) * self._roots[0]:
            return np.zeros(self.d)  # the mean of all people, without another pass
        return self.lift(point[:, None])[:, 0]


def _scaled(dosages: Array, frequency: Array) -> Array:
    """Patterson's scaling; zeros for variants that do not vary, and nan for missing calls."""
    deviation = np.sqrt(frequency * (1.0 - frequency))
    varies = deviation > 0.0
    scaled: Array = (dosages - _PLOIDY * frequency) / np.where(varies, deviation, 1.0)
    scaled[:, ~varies] = 0.0
    return scaled


def _labels(given: Any, genotypes: Genotypes) -> Any:
    """The labels of the people in their order."""
    if genotypes.people is None or not hasattr(given, "iloc"):
        return given
    if not given.index.is_unique:
        raise ValueError("sensitive_features has several labels for one person.")
    places = given.index.get_indexer(genotypes.people)
    absent = genotypes.people[places < 0].tolist()
    if len(absent) == len(places) == len(given):
        return given.to_numpy()  # with other names: by position
    if absent:
        raise ValueError(f"sensitive_features has no label for {listed(absent, 5)}.")
    return given.iloc[places].reset_index(drop=True)
