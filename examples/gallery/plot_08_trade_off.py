"""
How much fairness for how much loss?
====================================

A front is the whole trade-off between total loss and the largest disparity, from ordinary PCA to
the fairest subspace. Each point has a certificate. The data are Adult by race, with one 0/1
column for each category.
"""

# %%

from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

from fairpca import pareto_front
from fairpca.datasets import load_adult
from fairpca.plotting import DisparityDisplay, FrontDisplay

adult = load_adult(encoding="onehot", sensitive="race", keep_sensitive=False)
people = adult.data.drop(columns="fnlwgt")
numbers = [name for name in people if "=" not in name]
scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
X = scale.fit_transform(people)
front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5, n_points=12)
print(front)

# %%
# Choosing a point
# ----------------
# The first steps cost little, the last ones most: more than half of the possible improvement costs
# 0.9 % more loss, the rest another 4.5 %. A point of the front is an estimator like any other.
chosen = front.select(max_extra_loss=0.01)
FrontDisplay(front, chosen=chosen).plot()
plt.show()

# %%
fair = front.estimator(chosen)
DisparityDisplay.from_estimator(fair)
plt.show()
