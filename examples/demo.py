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
    fitted = {}
    for sensitive in ("sex", "race"):
        adult = load_adult(sensitive=sensitive, as_frame=False)
        X = StandardScaler().fit_transform(adult.data)
        fair = FairPCA(N_COMPONENTS).fit(X, sensitive_features=adult.sensitive_features)
        fitted[sensitive] = fair
        print(f"\nAdult by {sensitive}: {X.shape[1]} columns reduced to {N_COMPONENTS}")
        print(f"\n{fair.group_table_}\n")
        print(price(fair))
        for sentence in fair.certificate_.sentences():
            print(sentence)
    print(
        "\nA disparity is what a group loses beyond what it would lose with its own PCA."
        " Losses are mean squared reconstruction errors of standardised columns."
    )
    return fitted


def price(fair: FairPCA) -> str:
    """Say what fairness costs in total."""
    table = fair.group_table_
    ordinary = float(np.average(table.pca_loss, weights=table.count))
    extra = fair.solution_.total_loss / ordinary - 1.0
    return (
        f"Ordinary PCA: disparities differ by up to {np.ptp(table.pca_disparity):.4f}. "
        f"Fair PCA: by {np.ptp(table.disparity):.4f}, for {100 * extra:.2f} % more total loss."
    )


if __name__ == "__main__":
    run()
