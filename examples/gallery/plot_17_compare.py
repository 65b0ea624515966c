"""
Do I need fair PCA?
===================

``compare`` shows what each group loses on held-out rows with PCA, with PCA of a few more
components, and with fair PCA.
"""

# %%
# The data are Adult by race, without the column of survey weights, in three dimensions.
from matplotlib import pyplot as plt
from sklearn.preprocessing import StandardScaler

from fairpca import compare
from fairpca.datasets import load_adult
from fairpca.plotting import ComparisonDisplay

adult = load_adult(sensitive="race", keep_sensitive=False)
numbers = adult.data.drop(columns="fnlwgt")
X = StandardScaler().set_output(transform="pandas").fit_transform(numbers)
found = compare(X, sensitive_features=adult.sensitive_features, n_components=3)
print(found.verdict)

# %%
# PCA is the line of each group. A method differs clearly from PCA if its interval excludes the
# line. Small groups have wide intervals.
ComparisonDisplay(found).plot()
plt.show()

# %%
# The numbers are in two tables.
print(found)
