"""Sums of the products of a matrix's columns."""

import numpy as np

from fairpca._linalg.types import Array

FEW_COLUMNS = 32
"""Up to so many columns a product of different matrices is quicker than one with itself."""

SMALL_PRODUCT = 10**6
"""Multiplications up to which OpenBLAS computes a product of matrices without packing them first,
which takes as long as the product itself where there are few columns."""


def column_products(rows: Array, out: Array | None = None) -> Array:
    """``rows^T rows``, of one matrix or of each of a stack; (…, d, d)."""
    d = rows.shape[-1]
    out = np.empty((*rows.shape[:-2], d, d)) if out is None else out
    turned = np.swapaxes(rows, -1, -2)
    if d > FEW_COLUMNS:
        return np.matmul(turned, rows, out=out)
    # All columns but the first with all: of a matrix with itself NumPy lets a routine compute the
    # half, which packs its blocks and so takes longer.
    n, step = rows.shape[-2], SMALL_PRODUCT // (d * d)
    whole = n - n % step if n > step else 0
    np.matmul(turned[..., 1:, whole:], rows[..., whole:, :], out=out[..., 1:, :])
    if whole:  # many small products in one call
        parts = rows[..., :whole, :].reshape(*rows.shape[:-2], -1, step, d)
        products = np.swapaxes(parts, -1, -2)[..., 1:, :] @ parts
        out[..., 1:, :] += products.sum(axis=-3)
    out[..., 0, 1:] = out[..., 1:, 0]
    out[..., 0, 0] = np.einsum("...i,...i", rows[..., 0], rows[..., 0])
    return out
