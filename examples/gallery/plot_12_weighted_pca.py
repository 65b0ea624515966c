"""
Weighted PCA
============

``sample_weight`` makes rows count by a weight: survey weights, counts of equal rows, or weights
that balance groups. With ``groups=None`` `FairPCA` is a weighted ordinary PCA; with groups, it is
fair PCA with weights.
"""

# %%
# A weight of three is three rows
# -------------------------------
import numpy as np
from matplotlib import pyplot as plt

from fairpca import FairPCA

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 5)) * [3, 2, 1, 1, 1]
times = rng.integers(0, 4, size=400)
weighted = FairPCA(2, groups=None).fit(X, sample_weight=times)
repeated = FairPCA(2, groups=None).fit(np.repeat(X, times, axis=0))
print(np.allclose(weighted.components_, repeated.components_))


# %%
# A survey that oversampled one kind
# ----------------------------------
# One in five people in the population is of the second kind, but four in five in the sample.
# Weights, the population share over the sample share, correct this: the first axis is close to that
# of the population again.
def people(n: int, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Points in the plane, and which are of the second kind."""
    kind = rng.random(n) < second
    angle = np.radians(np.where(kind, 80, 20))
    along, across = np.where(kind, 1.6, 2.8) * rng.normal(size=n), 0.5 * rng.normal(size=n)
    x = np.cos(angle) * along - np.sin(angle) * across
    y = np.sin(angle) * along + np.cos(angle) * across
    return np.column_stack([x, y]), kind


population, _ = people(20000, second=0.2)
sample, second = people(600, second=0.8)
weights = np.where(second, 0.2 / 0.8, 0.8 / 0.2)

figure, ax = plt.subplots(figsize=(7, 4.5))
ax.scatter(sample[:, 0], sample[:, 1], s=5 * weights, color="#999999", label="sample, by weight")
for name, model, style in (
    ("population", FairPCA(1, groups=None).fit(population), "-"),
    ("sample", FairPCA(1, groups=None).fit(sample), ":"),
    ("sample, weighted", FairPCA(1, groups=None).fit(sample, sample_weight=weights), "--"),
):
    x, y = model.components_[0]
    print(f"{name:>16}: {np.degrees(np.arctan2(y, x)) % 180:5.1f} degrees")
    ax.plot([-6 * x, 6 * x], [-6 * y, 6 * y], style, linewidth=2, label=name)
ax.set_aspect("equal")
ax.legend(loc="upper right", fontsize=8)
figure.tight_layout()
plt.show()

# %%
# Equal weights are not equal losses
# ----------------------------------
# With ``criterion="balanced"`` both kinds count the same, without weights. It ignores which group
# is worst off: the result depends on the spectra, and here it favours the kind that varies more.
# Min-max minimises the largest disparity.
labels = np.where(second, "second", "first")
fair = FairPCA(1, criterion="minmax").fit(sample, sensitive_features=labels)
for name, model in (
    ("balanced", FairPCA(1, criterion="balanced").fit(sample, sensitive_features=labels)),
    ("min-max", fair),
):
    left = np.square(sample - model.inverse_transform(model.transform(sample))).sum(axis=1)
    print(f"{name:>8}: first {left[~second].mean():.2f}, second {left[second].mean():.2f}")
print(fair.group_table_)
