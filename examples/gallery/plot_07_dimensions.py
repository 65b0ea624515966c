"""
How many dimensions?
====================

Every group loses less in more dimensions, so any score picks the most components. Take the
smallest number at which the loss of every group on held-out rows is acceptable.
"""

# %%
# The data are Adult by sex, with one 0/1 column for each category. The figure shows the largest
# share of its variance that a group loses, cross-validated in five folds, with intervals, beside
# ordinary PCA.
from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, MinMax
from fairpca.datasets import load_adult
from fairpca.metrics import held_out_losses
from fairpca.plotting import HeldOutLossDisplay

adult = load_adult(encoding="onehot", sensitive="sex", keep_sensitive=False)
people = adult.data.drop(columns="fnlwgt").sample(8000, random_state=0)
sex = adult.sensitive_features[people.index]
numbers = [name for name in people if "=" not in name]
scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
losses = held_out_losses(
    make_pipeline(scale, FairPCA(criterion=MinMax(measure="share_lost"))),
    people,
    sensitive_features=sex,
    dimensions=[2, 4, 6, 8, 10, 12],
)
HeldOutLossDisplay.from_losses(losses)
plt.show()

# %%
# With ten dimensions the held-out loss of women, the worst-off group, is below 30 %. By this
# measure fair PCA and ordinary PCA hardly differ here.
print(losses)

# %%
# By a share instead
# ------------------
# ``n_components=0.75`` is the smallest number of dimensions in which every group keeps 75 % of its
# variance, on the rows of the fit.
fair = make_pipeline(scale, FairPCA(0.75)).fit(people, fairpca__sensitive_features=sex)[-1]
kept = 1 - fair.group_table_.loss / fair.group_table_.variance
print(fair.n_components_, dict(zip(fair.group_table_.labels, kept.round(3).tolist(), strict=True)))
