"""
Digits: what each class loses
=============================

Ten classes of handwritten digits, 8 by 8 pixels, are reduced to 12 dimensions. The classes are
the groups.
"""

# %%
# The share of its variance that each class keeps
# -----------------------------------------------
# The measure is the share of its variance that a class loses (``measure="share_lost"``). Half of
# the pictures are held out.
import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from fairpca import FairPCA, MinMax

digits = load_digits()
X, X_test, digit, digit_test = train_test_split(
    digits.data, digits.target, test_size=0.5, stratify=digits.target, random_state=0
)
share_lost = MinMax(measure="share_lost")
fair = FairPCA(12, criterion=share_lost).fit(X, sensitive_features=digit)
pca = PCA(12).fit(X)

lost = {}
for name, model in (("PCA", pca), ("fair PCA", fair)):
    left = X_test - model.inverse_transform(model.transform(X_test))
    lost[name] = np.array(
        [
            np.square(left[digit_test == k]).sum()
            / np.square(X_test[digit_test == k] - model.mean_).sum()
            for k in range(10)
        ]
    )
    worst = lost[name].argmax()
    print(f"{name:>8}: the worst-off digit is {worst}, which loses {lost[name][worst]:.1%}")

# %%
# Where it is lost
# ----------------
# The figure shows, for each class, the mean squared error of each pixel on held-out pictures (dark
# is a large error), and the share of the class's variance that is lost. PCA loses a third of the
# eights' variance, fair PCA 27 %. Zeros, ones and sixes, which lost least, pay for it.
figure, axes = plt.subplots(2, 10, figsize=(10, 2.6))
errors = {
    name: np.square(X_test - model.inverse_transform(model.transform(X_test)))
    for name, model in (("PCA", pca), ("fair PCA", fair))
}
most = max(
    error[digit_test == k].mean(axis=0).max() for error in errors.values() for k in range(10)
)
for row, (name, error) in zip(axes, errors.items(), strict=True):
    for k, ax in enumerate(row):
        image = error[digit_test == k].mean(axis=0).reshape(8, 8)
        ax.imshow(image, cmap="Greys", vmin=0, vmax=most)
        ax.set_title(f"{k}: {lost[name][k]:.0%}", fontsize=9)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(name)
figure.tight_layout()
plt.show()

# %%
# One picture
# -----------
# This is the held-out picture whose loss falls most, of the worst-off class.
worst = lost["PCA"].argmax()
members = np.flatnonzero(digit_test == worst)
gain = (errors["PCA"] - errors["fair PCA"]).sum(axis=1)
shown = members[gain[members].argmax()]
figure, axes = plt.subplots(1, 3, figsize=(6, 2.3))
for ax, (title, image) in zip(
    axes,
    {
        "as it is": X_test[shown],
        "after PCA": pca.inverse_transform(pca.transform(X_test[[shown]]))[0],
        "after fair PCA": fair.inverse_transform(fair.transform(X_test[[shown]]))[0],
    }.items(),
    strict=True,
):
    ax.imshow(image.reshape(8, 8), cmap="Greys", vmin=0, vmax=16)
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
