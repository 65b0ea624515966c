"""Two data sets of the fair PCA literature, packaged with the library.

`load_adult` gives UCI Adult (census records, target: income over 50,000 dollars) and
`load_credit` gives UCI Default of Credit Card Clients (target: default in the next month). Both
return a `sklearn.utils.Bunch` that carries the sensitive features next to the data and the target,
need no network, and share their options:

``sensitive``
    which attributes define the groups,
``encoding``
    how the categorical columns become numbers,
``keep_sensitive``
    whether the sensitive columns stay in the data as features,
``as_frame``
    pandas objects or NumPy arrays.

The data are licensed under CC BY 4.0; ``data/ATTRIBUTION.md`` in this package names the authors
and sources.
"""

from fairpca.datasets._adult import load_adult
from fairpca.datasets._credit import load_credit

__all__ = ["load_adult", "load_credit"]
