"""Claims of section 6.2: more than two groups."""

from __future__ import annotations

import pandas as pd

from studies.reproduction.claims.evidence import (
    COLUMNS,
    Condition,
    Evidence,
    at_most,
    numbers,
    price,
    ratio,
    share,
)
from studies.reproduction.claims.parts import Claim, Part, parts_of, sweep, unseen, ways
from studies.reproduction.methods import EXACT, PARETO, PCA, PRINTED
from studies.reproduction.plots.style import only


def race(evidence: Evidence) -> Claim:
    """Five groups."""
    conditions: dict[str, Condition] = {
        "at most one group is worse off than with PCA": lambda m, p: m["worse off"] <= 1,
        "the mean disparity is at most half of PCA's": at_most("mean disparity", 0.5),
        "the total loss rises by at most 1 %": lambda m, p: price(m, p) <= 1.0,
    }
    return _claim(
        evidence,
        "Adult",
        "race",
        "On Adult by race, fair PCA lowers the disparity of all groups but one, and the average "
        "strongly, for a negligible increase of the total loss.",
        "section 6.2, figures 4 to 6",
        conditions,
        (0.25, 0.5, 0.75, 0.9, 1.0),
    )


def marriage(evidence: Evidence) -> Claim:
    """Three groups."""
    conditions: dict[str, Condition] = {
        "all groups but one lose at most 5 % more than with their own PCA": lambda m, p: (
            m["far"] <= 1
        ),
        "the mean disparity is below PCA's": lambda m, p: ratio("mean disparity")(m, p) < 1.0,
        "the total loss rises by at most 1 %": lambda m, p: price(m, p) <= 1.0,
    }
    return _claim(
        evidence,
        "Credit",
        "marriage",
        'On Credit by marriage, fair PCA comes close to each group\'s own PCA, except for "other", '
        "with a total loss very close to PCA's, and a lower average disparity.",
        "section 6.2, figures 7 and 8",
        conditions,
        (0.5, 0.75, 0.9, 1.0, 1.1),
    )


def generalises(evidence: Evidence) -> Claim:
    """More than five groups."""
    frame = evidence.groupings.set_index("grouping")
    conditions = {
        "the largest disparity is below PCA's": (frame["largest disparity"] < frame["PCA largest"]),
        "the largest difference is at most half of PCA's": (
            frame["spread"] <= 0.5 * frame["PCA spread"]
        ),
        "the total loss is at most 5 % above the least one with no larger differences": (
            frame["gap"] <= 0.05
        ),
    }
    conditions["all three"] = pd.concat(conditions, axis=1).all(axis=1)
    lines = [
        f"| largest disparity / spread / extra loss | PCA | {' | '.join(COLUMNS.values())} |",
        "|---" * (2 + len(COLUMNS)) + "|",
    ]
    for name, part in frame.groupby(level=0, sort=False):
        plain, ends = part.iloc[0], part.set_index("method")
        cells = [f"{plain['PCA largest']:.3g} / {plain['PCA spread']:.3g}"]
        cells += [
            f"{end['largest disparity']:.3g} / {end['spread'] * (end['spread'] > 1e-9):.3g} / {100 * end['extra loss']:.2g} %"
            for end in (ends.loc[method] for method in COLUMNS)
        ]
        lines.append(f"| {name} ({plain['groups']}) | {' | '.join(cells)} |")
    return Claim(
        "Fair PCA generalises efficiently to sensitive features with many groups.",
        "abstract, section 6.2",
        tuple(
            Part(words, {name: cases[frame["method"] == name] for name in COLUMNS})
            for words, cases in conditions.items()
        ),
        "Every grouping with more than five groups of [many_groups.md](../many_groups.md), r = 5, standardised codes; "
        "as printed with 1,000 steps, the default from one start, and the smallest spread that the exact solver found. "
        "The least total loss is bounded by the certificate. The paper says itself that more objectives make the "
        "optimisation harder. With 63 groups a random subspace is Pareto stationary for its pairs, with fewer runs stall; the default pools them.",
        (),
        ("\n".join(lines),),
    )


def _claim(
    evidence: Evidence,
    data: str,
    sensitive: str,
    statement: str,
    where: str,
    conditions: dict[str, Condition],
    averages: tuple[float, ...],
) -> Claim:
    frame = evidence.cases(data=data, sensitive=sensitive)
    reference = only(evidence.methods, data=data, sensitive=sensitive)
    listed = list(conditions.values())

    def all_three(found: pd.DataFrame, plain: pd.DataFrame) -> pd.Series:
        cases = [condition(found, plain) for condition in listed]
        return cases[0] & cases[1] & cases[2]

    groups = frame.pivot_table(
        index=["preprocessing", "loss", "r", "group"], columns="method", values="disparity"
    )
    lines = [f"| disparity over PCA's, median | {' | '.join(COLUMNS.values())} |"]
    lines.append("|---" * (1 + len(COLUMNS)) + "|")
    for group in groups.index.unique("group"):
        here = groups.xs(group, level="group")
        cells = [f"{(here[name] / here[PCA]).median():.2g}" for name in COLUMNS]
        lines.append(f"| {group} | {' | '.join(cells)} |")
    exact = frame[frame["method"] == EXACT].drop_duplicates(["preprocessing", "loss", "r"])
    impossible = exact["status"] == "infeasible"
    told = only(exact[impossible], preprocessing=reference["preprocessing"].iloc[0], loss="mean")[
        "r"
    ]
    costs = {name: price(numbers(frame, name), numbers(frame, PCA)) for name in COLUMNS}
    words = (
        f"In the median the total loss rises by {costs[PRINTED].median():.2g} % as printed, "
        f"{costs[PARETO].median():.2g} % with our default and {costs[EXACT].median():.2g} % exactly. "
        f"Equality is proven impossible in {share(impossible)} cases"
    )
    words += (
        f", with standardised codes and means at r = {', '.join(map(str, told))}."
        if len(told)
        else "."
    )
    # Only all dimensions of the reference were run with every start and regularisation.
    seen = {words: condition for words, condition in conditions.items() if "5 %" not in words}
    name = f"{data}_{sensitive}".lower()
    return Claim(
        statement,
        where,
        parts_of(frame, {**conditions, "all three": all_three}),
        words,
        (f"{name}_loss", f"{name}_disparity"),
        (
            "\n".join(lines),
            ways(
                evidence,
                reference,
                {**conditions, "all three": all_three},
                data=data,
                sensitive=sensitive,
            ),
            sweep(
                frame,
                "mean disparity over PCA's",
                ratio("mean disparity"),
                averages,
                lambda x: f"{100 * x:g} %",
            ),
            sweep(
                frame,
                "rise of the total loss",
                price,
                (0.5, 1, 2, 5, 10, 20),
                lambda x: f"{x:g} %",
            ),
            unseen(evidence, seen, data=data, sensitive=sensitive),
        ),
    )
