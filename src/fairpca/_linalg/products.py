"""Sums of the products of a matrix's columns."""

import numpy as np

from fairpca._linalg.types import Array

FEW_COLUMNS = 32
"""Up to so many columns a product of different matrices is quicker than one with itself."""

_LANES = 8
"""Numbers that a processor computes with at once: blocks of so many columns take the least time."""

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
    # Some columns with all, then the others with each other: little more than half of a symmetric
    # matrix. NumPy leaves the product of a matrix with itself to a routine that computes the half
    # but packs its blocks first, which takes longer: so the last column is left out on one side.
    first = _LANES * -(-d // (2 * _LANES)) if d > _LANES else d // 2
    n, step = rows.shape[-2], SMALL_PRODUCT // (d * d)
    whole = n - n % step if n > step else 0
    parts = rows[..., :whole, :].reshape(*rows.shape[:-2], whole // step, step, d)
    for these, those in (slice(first), slice(None)), (slice(first, d - 1), slice(first, None)):
        part = out[..., these, those]
        np.matmul(turned[..., these, whole:], rows[..., whole:, those], out=part)
        if whole:  # many small products in one call
            products = np.swapaxes(parts[..., these], -1, -2) @ parts[..., those]
            part += products.sum(axis=-3)
    out[..., first:, :first] = np.swapaxes(out[..., :first, first:], -1, -2)
    out[..., -1, first:-1] = out[..., first:-1, -1]
    out[..., -1, -1] = np.einsum("...i,...i", rows[..., -1], rows[..., -1])
    return out
