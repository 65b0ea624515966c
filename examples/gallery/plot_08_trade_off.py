"""
How much fairness for how much loss?
====================================

The whole trade-off between total loss and the largest disparity, from ordinary PCA to the fairest
subspace, each point with a certificate. Adult by race, prepared as in the first example.
"""

# %%

from matplotlib import pyplot as plt
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import StandardScaler

from fairpca import pareto_front
from fairpca.datasets import load_adult
from fairpca.plotting import DisparityDisplay, FrontDisplay

adult = load_adult(encoding="onehot", sensitive="race", keep_sensitive=False)
numbers = [name for name in adult.data if "=" not in name]
scale = make_column_transformer((StandardScaler(), numbers), remainder="passthrough")
X = scale.fit_transform(adult.data)
front = pareto_front(X, sensitive_features=adult.sensitive_features, n_components=5, n_points=12)
print(front)

# %%
# Choosing a point
# ----------------
# The first steps cost next to nothing, the last ones most: three quarters of one per cent more
# loss buys nearly three quarters of what can be had. A point of the front is an estimator like
# any other.
chosen = front.select(max_extra_loss=0.01)
FrontDisplay.from_front(front, chosen=chosen)
plt.show()

# %%
fair = front.estimator(chosen)
DisparityDisplay.from_estimator(fair)
plt.show()
