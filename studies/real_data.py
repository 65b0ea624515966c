"""The library's two real data sets, by the names that pages of studies have for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sklearn.preprocessing import StandardScaler

from fairpca import GroupMoments
from fairpca._linalg.types import Array
from fairpca.datasets import load_adult, load_credit

_LOADERS: dict[str, Callable[..., Any]] = {"Adult": load_adult, "Credit": load_credit}


def real_rows(
    name: str, *, standardised: bool = True, keep_sensitive: bool = True
) -> tuple[Array, Any]:
    """Rows, categories as integer codes, and their groups: of "Adult, sex × race", for one."""  # noqa: RUF002
    data, groups = re.split(", | by ", name)
    sensitive = groups.split(" × ")  # noqa: RUF001
    bunch = _LOADERS[data](
        sensitive=sensitive[0] if len(sensitive) == 1 else sensitive,
        keep_sensitive=keep_sensitive,
        as_frame=False,
    )
    X = StandardScaler().fit_transform(bunch.data) if standardised else bunch.data
    return X, bunch.sensitive_features


def real_moments(name: str, *, standardised: bool = True) -> GroupMoments:
    """Moments of these rows by group."""
    return GroupMoments.from_rows(*real_rows(name, standardised=standardised))
