"""
A custom objective
==================

`ParetoDescent` lowers any list of objectives at once. The objective here penalises groups that
keep less than half of their variance.
"""

# %%
# An objective has a value and a gradient
# ---------------------------------------
from dataclasses import dataclass

import numpy as np
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, ParetoDescent, Problem
from fairpca.datasets import load_adult
from fairpca.objectives import TotalLoss

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ShareForAll:
    """Half the sum of squares of what each group lacks of its share."""

    share: float = 0.5
    name: str = "share for all"

    def missing(self, problem: Problem, basis: Array) -> Array:
        """What each group lacks."""
        kept = problem.kept(basis) / problem.traces
        return np.asarray(np.maximum(self.share - kept, 0.0))

    def value(self, problem: Problem, basis: Array) -> float:
        """The number to be made small."""
        return 0.5 * float(np.square(self.missing(problem, basis)).sum())

    def gradient(self, problem: Problem, basis: Array) -> Array:
        """Its derivative, in the shape of the basis."""
        slopes = self.missing(problem, basis) / problem.traces
        return np.asarray(-2.0 * problem.weighted_sum(slopes) @ basis)


# %%
# Adult by race (12 columns, categories as codes), reduced to five
# ----------------------------------------------------------------
adult = load_adult(sensitive="race", keep_sensitive=False)
X = StandardScaler().fit_transform(adult.data.drop(columns="fnlwgt"))
race = adult.sensitive_features
solver = ParetoDescent([TotalLoss(), ShareForAll()], n_restarts=5)
fair = FairPCA(5, solver=solver).fit(X, sensitive_features=race)
table = fair.group_table_

before, after = 1 - table.pca_loss / table.variance, 1 - table.loss / table.variance
for name, share, now in zip(table.labels, before, after, strict=True):
    print(f"{name:>18} keeps {share:.1%} with PCA, {now:.1%} now")

# %%
figure, ax = plt.subplots(figsize=(7.5, 3.5))
places = np.arange(len(table.labels))
ax.barh(places - 0.2, 100 * before, 0.38, color="#D55E00", label="ordinary PCA")
ax.barh(places + 0.2, 100 * after, 0.38, color="#0072B2", label="share for all")
ax.axvline(50, color="#333333", linestyle=":")
ax.set_yticks(places, [str(name) for name in table.labels])
ax.invert_yaxis()
ax.set_xlim(30, 70)
ax.set_xlabel("% of the variance kept")
ax.legend(loc="upper right")
figure.tight_layout()
plt.show()

# %%
# With PCA one group keeps less than half; now none does. The objective is then zero, so the descent
# stops there, short of the fairest subspace.
