"""Who pays for PCA on UCI Adult, by sex and by race, and what a fair subspace changes.

Run ``make demo``, or ``python examples/demo.py`` where fairpca is installed.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA
from fairpca.datasets import load_adult

N_COMPONENTS = 5


def run() -> dict[str, FairPCA]:
    """Fit Adult by sex and by race, print the findings, and return the fitted models."""
    print(
        "UCI Adult: 14 standardised columns, sex and race among them, categories as codes.\n"
        "A group's loss is the squared distance between a row and its reconstruction, averaged\n"
        "over its rows; with nothing kept it is 14 on average. Its disparity is what it loses\n"
        "beyond what it would lose with a PCA of its own."
    )
    fitted = {}
    for sensitive in ("sex", "race"):
        adult = load_adult(sensitive=sensitive, as_frame=False)
        X = StandardScaler().fit_transform(adult.data)
        fair = FairPCA(N_COMPONENTS).fit(X, sensitive_features=adult.sensitive_features)
        fitted[sensitive] = fair
        print(f"\nAdult by {sensitive}: {X.shape[1]} columns reduced to {N_COMPONENTS}")
        print(f"\n{fair.group_table_}\n")
        print(finding(fair))
        for sentence in fair.certificate_.sentences():
            print(sentence)
    return fitted


def finding(fair: FairPCA) -> str:
    """Say who pays with ordinary PCA, and what fairness costs in total."""
    table = fair.group_table_
    worst, best = table.pca_disparity.argmax(), table.pca_disparity.argmin()
    ordinary = float(np.average(table.pca_loss, weights=table.count))
    extra = fair.solution_.total_loss / ordinary - 1.0
    return (
        f"With ordinary PCA {table.labels[worst]} lose {table.pca_disparity[worst]:.2f} more than "
        f"they need to, {table.labels[best]} {table.pca_disparity[best]:.2f}. With fair PCA every "
        f"group loses {table.disparity.mean():.2f} more, for {100 * extra:.2f} % more total loss."
    )


if __name__ == "__main__":
    run()
