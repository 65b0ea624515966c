"""What it costs that the first components are a fair subspace too.

Run ``python -m studies.price_of_nesting`` to rewrite studies/nested.md (under a minute).
"""

from pathlib import Path

from fairpca import FairPCA
from fairpca.fair_pca import NestingTable
from studies.real_data import real_rows

TARGET = Path(__file__).with_name("nested.md")

CASES = (
    *("Adult, sex", "Adult, race"),
    *("Credit, sex", "Credit, marriage", "Credit, education"),
)

N_COMPONENTS = 10

HEAD = """# Nested components

The best subspace of 5 dimensions need not lie inside the best of 10: to keep "the first five of ten
components" of a `FairPCA(10)` is not the same as `FairPCA(5)`. Where several dimensions are in use,
`FairPCA(10, nested=True)` finds components whose first j are a fair subspace of j dimensions for
every j (after Matakos, Ciaperoni and Mannila, arXiv:2503.21563). Each component is the best given
those before it, with a certificate of its own, and they keep this order: nothing is rotated or
sorted. `fair.nesting_` is the table of what that costs.

Below are Adult (training part) and Credit, categories as integer codes, the column that defines the
groups left out, every column standardised. *nested* is the largest disparity of a group with the
first j components, *free* that of the best subspace of j dimensions that was found, and *price* the
difference. *step* says whether component j is proven optimal, given those before it, or bounded.
Made by `python -m studies.price_of_nesting`.
"""


def nesting(name: str, n_components: int) -> NestingTable:
    """The table of nested components of a data set."""
    X, groups = real_rows(name, keep_sensitive=False)
    fair = FairPCA(n_components, criterion="minmax", nested=True)
    table: NestingTable = fair.fit(X, sensitive_features=groups).nesting_
    return table


def lines(title: str, table: NestingTable) -> list[str]:
    """The lines of one data set."""
    columns = zip(table.value, table.free_value, table.price, table.status, strict=True)
    return [
        f"| {title} | {j} | {value:.3f} | {free:.3f} | {price:.3f} | {status} |"
        for j, (value, free, price, status) in enumerate(columns, start=1)
    ]


def main() -> None:
    """Fit everything and write the page."""
    page = [HEAD, "| groups | j | nested | free | price | step |", "|---" * 6 + "|"]
    for name in CASES:
        page += lines(name, nesting(name, N_COMPONENTS))
        print("\n".join(page[-N_COMPONENTS:]), flush=True)
    TARGET.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
