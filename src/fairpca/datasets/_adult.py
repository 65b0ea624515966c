"""UCI Adult."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from sklearn.utils import Bunch

from fairpca.datasets._table import FOLDER, Table, make_bunch, read_rows


def load_adult(
    *,
    subset: str = "train",
    sensitive: str | Sequence[str] = "sex",
    encoding: str = "codes",
    keep_sensitive: bool = True,
    as_frame: bool = True,
) -> Bunch:
    """Load UCI Adult: census records with income as target and sex and race as groups.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        UCI's training part, its test part, or the training part followed by the test part.
    sensitive : {"sex", "race"} or a sequence of them, default="sex"
        The attributes that define the groups: the columns of `sensitive_features`.
    encoding : {"codes", "onehot", "numeric"}, default="codes"
        How the categorical columns enter `data`. "codes" makes each one column of integer codes
        (the alphabetical order of its levels, "?" being a level), "onehot" a 0/1 column for each
        level, and "numeric" leaves them out. The columns are the same for every subset, so a
        one-hot column may be constant.
    keep_sensitive : bool, default=True
        Whether the columns named in `sensitive` stay in `data`. Other columns can still reveal
        them: `relationship`, for one, has the levels Husband and Wife.
    as_frame : bool, default=True
        Return pandas objects instead of NumPy arrays.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data`` : DataFrame or float64 array of shape (n_samples, n_features)
            The features.
        ``target`` : Series named "income" or integer array of shape (n_samples,)
            1 for an income over 50,000 dollars, else 0.
        ``sensitive_features`` : Series, DataFrame or object array
            The group labels in UCI's words, such as "Female": a Series or an array of shape
            (n_samples,) for one attribute, a DataFrame or an array of shape
            (n_samples, n_attributes) for several.
        ``feature_names`` : list of str
            The columns of `data`.
        ``target_names`` : list of str
            The meaning of the targets 0 and 1.
        ``DESCR`` : str
            Source, licence, counts and encodings.

    Raises
    ------
    ValueError
        If an option has an unknown value.
    ImportError
        If `as_frame` is true and pandas is not installed.

    See Also
    --------
    fairpca.datasets.load_credit : The other data set.

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> adult = load_adult(encoding="numeric")
    >>> adult.data.shape
    (32561, 6)
    >>> adult.sensitive_features.value_counts().to_dict()
    {'Male': 21790, 'Female': 10771}
    """
    return make_bunch(_table(), subset, sensitive, encoding, keep_sensitive, as_frame)


# The files have no header.
_NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country"
).split()
_NUMERIC = "age fnlwgt education-num capital-gain capital-loss hours-per-week".split()


@lru_cache(maxsize=1)
def _table() -> Table:
    train = read_rows("adult.data.gz")
    test = read_rows("adult.test.gz")[1:]  # the first line is a comment
    rows = train + test
    columns, levels = {}, {}
    for name, cells in zip(_NAMES, zip(*(row[:-1] for row in rows), strict=True), strict=True):
        values: Sequence[str | int] = cells
        if name not in _NUMERIC:
            levels[name] = dict(enumerate(sorted(set(cells))))
            codes = {level: code for code, level in levels[name].items()}
            values = [codes[cell] for cell in cells]
        columns[name] = np.array(values, dtype=np.float64)
    return Table(
        columns=columns,
        levels=levels,
        attributes={name: (name, levels[name]) for name in ("sex", "race")},
        # The labels of the test part end in a full stop.
        target=np.array([row[-1].rstrip(".") == ">50K" for row in rows], dtype=np.int64),
        target_name="income",
        target_names=("<=50K", ">50K"),
        is_test=np.arange(len(rows)) >= len(train),
        description=(FOLDER / "adult.txt").read_text(encoding="ascii"),
    )
