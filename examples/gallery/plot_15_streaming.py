"""
Rows that come in batches
=========================

`FairPCA` needs only each group's count, mean and scatter, which add up exactly. So batches of a
stream, files of a folder and rows of several sites give the fit on all rows, up to rounding.
"""

# %%
# Adult by sex, in batches of 1,000
# ---------------------------------
# The moments of a batch are added to those before, and ``fit_moments`` finds the fair subspace of
# all rows so far.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, GroupMoments
from fairpca.datasets import load_adult

adult = load_adult(keep_sensitive=False)
X = StandardScaler().fit_transform(adult.data.drop(columns="fnlwgt"))
sex = adult.sensitive_features.to_numpy()
whole = FairPCA(5).fit(X, sensitive_features=sex)

moments, seen, largest, angle = None, [], [], []
for start in range(0, len(X), 1000):
    batch = slice(start, start + 1000)
    part = GroupMoments.from_rows(X[batch], sex[batch], folds=True)
    moments = part if moments is None else moments + part
    stream = FairPCA(5).fit_moments(moments)
    seen.append(int(stream.group_table_.count.sum()))
    largest.append((stream.group_table_.pca_disparity.max(), stream.group_table_.disparity.max()))
    cosines = np.linalg.svd(stream.components_ @ whole.components_.T, compute_uv=False)
    angle.append(np.degrees(np.arccos(np.clip(cosines.min(), -1, 1))))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
axes[0].plot(seen, [pca for pca, _ in largest], color="#D55E00", label="ordinary PCA")
axes[0].plot(seen, [fair for _, fair in largest], color="#0072B2", label="fair PCA")
axes[0].set_ylabel("largest disparity, rows so far")
axes[0].set_ylim(bottom=0)
axes[0].legend()
axes[1].plot(seen, angle, color="#0072B2")
axes[1].set_ylabel("angle to the fit on all rows (degrees)")
for ax in axes:
    ax.set_xlabel("rows so far")
figure.tight_layout()
plt.show()

# %%
# The disparities settle after a few thousand rows, the subspace later; at the end it is that of
# all rows.
print(np.abs(stream.group_table_.disparity / whole.group_table_.disparity - 1).max() < 1e-9)
