"""
How many dimensions?
====================

Every group loses less in more dimensions, so any score picks the most components. Take the
smallest number at which the loss of every group on held-out rows is acceptable.
"""

# %%
# The data are Adult by sex, with one 0/1 column for each category. The figure shows the largest
# share of its variance that a group loses, on rows held out of the fit in five folds, with
# intervals, beside ordinary PCA.
import numpy as np
from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, MinMax, compare
from fairpca.datasets import load_adult

adult = load_adult(encoding="onehot", sensitive="sex", keep_sensitive=False)
people, sex = adult.data.drop(columns="fnlwgt"), adult.sensitive_features
numbers = [name for name in people if "=" not in name]
scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
X = scale.fit_transform(people)
dimensions = [2, 4, 6, 8, 10, 12]
lost: dict[str, list[list[float]]] = {"PCA": [], "fair PCA": []}
for r in dimensions:
    found = compare(X, sensitive_features=sex, n_components=r, criterion=MinMax("share_lost"))
    worst = 100 * np.array(found.share_lost.of(found.worst_group))
    for name, estimates in lost.items():
        estimates.append(worst[:, found.methods.index(name)].tolist())
for name, estimates in lost.items():
    value, low, high = np.array(estimates).T
    plt.errorbar(dimensions, value, [value - low, high - value], capsize=3, label=name)
plt.xlabel("dimensions")
plt.ylabel("worst-off group's held-out loss (% of its variance)")
plt.legend()
plt.show()

# %%
# By this measure the worst-off group loses one to three points less with fair PCA than with PCA.
for r, (value, low, high) in zip(dimensions, lost["fair PCA"], strict=True):
    print(f"{r} dimensions: {value:.1f} % lost ({low:.1f} to {high:.1f})")

# %%
# By a share instead
# ------------------
# ``n_components=0.75`` is the smallest number of dimensions in which every group keeps 75 % of its
# variance, on the rows of the fit.
fair = FairPCA(0.75).fit(X, sensitive_features=sex)
kept = 1 - fair.group_table_.loss / fair.group_table_.variance
print(fair.n_components_, dict(zip(fair.group_table_.labels, kept.round(3).tolist(), strict=True)))
