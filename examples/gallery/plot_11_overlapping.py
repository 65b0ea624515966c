"""
Overlapping groups: sex and race
================================

With several sensitive columns, the groups are their intersections (Black women), the values of
each column alone (all women, all Black people), or both. The data are Adult, with one 0/1 column
for each category.
"""

# %%

from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, audit
from fairpca.datasets import load_adult
from fairpca.plotting import DisparityDisplay

adult = load_adult(encoding="onehot", sensitive=["sex", "race"], keep_sensitive=False)
people = adult.data.drop(columns="fnlwgt")
numbers = [name for name in people if "=" not in name]
scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
X = scale.fit_transform(people)
labels = adult.sensitive_features

# %%
# Fair to the marginal groups
# ---------------------------
# Each person is in two groups, one for each column. The total loss counts everyone once.
marginal = FairPCA(5, criterion="minmax", groups="marginals").fit(X, sensitive_features=labels)
print(marginal.group_table_)

# %%
# Is that fair to intersections too?
# ----------------------------------
# Not by itself. The audit judges the same subspace by the ten intersections: women of "Other" race
# have more than twice the largest disparity of a marginal group.
table = audit(marginal, X, sensitive_features=labels, groups="intersections", n_resamples=0)
DisparityDisplay(table).plot()
plt.show()

# %%
# With ``groups="both"``, min-max minimises the largest disparity of the 17 groups.
both = FairPCA(5, criterion="minmax", groups="both").fit(X, sensitive_features=labels)
print(both.certificate_.sentences()[0])
DisparityDisplay.from_estimator(both)
plt.show()

# %%
# Large groups pay for three small ones: all but two of the other groups are worse off than with
# ordinary PCA. With 109 to 346 rows, the disparities of the smallest intersections may be due to
# chance.
