"""UCI Default of Credit Card Clients."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from sklearn.utils import Bunch

from fairpca.datasets._table import FOLDER, Table, make_bunch, read_rows


def load_credit(
    *,
    subset: str = "all",
    sensitive: str | Sequence[str] = "sex",
    encoding: str = "codes",
    keep_sensitive: bool = True,
    as_frame: bool = True,
) -> Bunch:
    """Load UCI Default of Credit Card Clients, with sex, marriage and education as groups.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        All rows, or a part of them. UCI defines no split; the parts are defined by this library.
        They are fixed, hold 70 and 30 percent of the rows, and have equal shares of defaults:
        within each class of the target, in file order, the third, sixth and ninth of every ten
        rows are test rows.
    sensitive : {"sex", "marriage", "education"} or a sequence of them, default="sex"
        The attributes that define the groups: the columns of `sensitive_features`.
        Sex is "female" or "male", marriage "married", "single" or "other" (UCI's code 3 and the
        undocumented code 0, which 54 rows have), and education
        "graduate school", "university", "high school" or "other" (UCI's code 4 and the
        undocumented codes 0, 5 and 6).
    encoding : {"codes", "onehot", "numeric"}, default="codes"
        How the categorical columns SEX, EDUCATION and MARRIAGE enter `data`. "codes" leaves each
        as one column of UCI's integer codes, "onehot" makes a 0/1 column for each code, and
        "numeric" leaves them out. The columns are the same for every subset, so a one-hot column
        may be constant.
    keep_sensitive : bool, default=True
        Whether the columns named in `sensitive` stay in `data`.
    as_frame : bool, default=True
        Return pandas objects instead of NumPy arrays.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data`` : DataFrame or float64 array of shape (n_samples, n_features)
            The features.
        ``target`` : Series named "default" or integer array of shape (n_samples,)
            1 for a default in the next month, else 0.
        ``sensitive_features`` : Series, DataFrame or object array
            The group labels: a Series or an array of shape (n_samples,) for one attribute, a
            DataFrame or an array of shape (n_samples, n_attributes) for several.
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
    fairpca.datasets.load_adult : The other data set.

    Examples
    --------
    >>> from fairpca.datasets import load_credit
    >>> credit = load_credit(sensitive="marriage", keep_sensitive=False)
    >>> credit.data.shape
    (30000, 22)
    >>> credit.sensitive_features.value_counts().to_dict()
    {'single': 15964, 'married': 13659, 'other': 377}
    """
    return make_bunch(_table(), subset, sensitive, encoding, keep_sensitive, as_frame)


_EDUCATION = ("other", "graduate school", "university", "high school", "other", "other", "other")
_ATTRIBUTES = {
    "sex": ("SEX", {1: "male", 2: "female"}),
    "marriage": ("MARRIAGE", {0: "other", 1: "married", 2: "single", 3: "other"}),
    "education": ("EDUCATION", dict(enumerate(_EDUCATION))),
}


@lru_cache(maxsize=1)
def _table() -> Table:
    header, *rows = read_rows("UCI_Credit_Card.csv.gz")
    values = np.array(rows, dtype=np.float64)
    target = values[:, -1].astype(np.int64)
    # Counting rows instead of drawing them keeps the split the same for every version of NumPy.
    is_test = np.zeros(len(target), dtype=bool)
    for label in np.unique(target):
        members = np.flatnonzero(target == label)
        is_test[members] = np.isin(np.arange(len(members)) % 10, (2, 5, 8))
    # The first column is a row number and the last one the target.
    columns = dict(zip(header[1:-1], values.T[1:-1], strict=True))
    return Table(
        columns=columns,
        levels={
            column: {code: str(code) for code in sorted(labels)}
            for column, labels in _ATTRIBUTES.values()
        },
        attributes=_ATTRIBUTES,
        target=target,
        target_name="default",
        target_names=("no default", "default"),
        is_test=is_test,
        description=(FOLDER / "credit.txt").read_text(encoding="ascii"),
    )
