"""Claims of section 6.3, table 1, and the remarks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from studies.reproduction.claims.evidence import COLUMNS, Evidence, share, span
from studies.reproduction.claims.parts import Claim, Part
from studies.reproduction.data import REFERENCE
from studies.reproduction.methods import EXACT, PARETO, PCA, PRINTED, SDP, WEIGHTS, look
from studies.reproduction.plots.style import only
from studies.reproduction.sweep import by_setting

_BACKENDS = {"clarabel": "Clarabel", "scs": "SCS"}


def downstream(evidence: Evidence) -> Claim:
    """Equal opportunity of a classifier."""
    frame = evidence.classifiers
    plain = frame[frame["reduction"] == PCA].set_index(["data", "preprocessing"])["DEO"]
    halved, lower, higher, better, worse = {}, {}, {}, {}, {}
    for name in (PRINTED, PARETO, EXACT, SDP):
        part = frame[frame["reduction"] == name].set_index(["data", "preprocessing"])
        # Where nobody is predicted positive there is nothing to lower.
        part = part[(plain.reindex(part.index) > 0.005).to_numpy()]
        change, half = part["DEO minus PCA"], part["DEO minus PCA ±"]
        gain, error = _worst_group(part, frame)
        better[name], worse[name] = gain > error, gain < -error
        halved[name] = part["DEO"] <= 0.5 * plain.reindex(part.index)
        lower[name], higher[name] = change + half < 0, change - half > 0
    rows = [
        "| DEO | preprocessing | PCA | as printed | our default | exact | SDP |",
        "|---|---|---|---|---|---|---|",
    ]
    for (data, name), part in frame.groupby(["data", "preprocessing"], sort=False):
        cells = part.set_index("reduction")
        shown = [
            f"{cells.loc[m, 'DEO']:.3f} ± {cells.loc[m, 'DEO ±']:.3f}" if m in cells.index else ""
            for m in (PCA, PRINTED, PARETO, EXACT, SDP)
        ]
        rows.append(f"| {data} | {name} | {' | '.join(shown)} |")
    accuracy = [
        "| accuracy, standardised codes | group | PCA | as printed | our default | exact |",
        "|---|---|---|---|---|---|",
    ]
    for data, part in only(frame, preprocessing=REFERENCE).groupby("data", sort=False):
        cells = part.set_index("reduction").dropna(axis=1, how="all")
        groups = [c for c in cells if c.startswith("accuracy ") and not c.endswith("±")]
        for group in groups:
            shown = [
                f"{cells.loc[m, group]:.3f} ± {cells.loc[m, f'{group} ±']:.3f}"
                for m in (PCA, PRINTED, PARETO, EXACT)
            ]
            accuracy.append(f"| {data} | {group.removeprefix('accuracy ')} | {' | '.join(shown)} |")
    return Claim(
        "After fair PCA a classifier's difference of equal opportunity drops dramatically.",
        "section 6.3, figure 9",
        (
            Part("DEO is at most half of that after PCA", halved),
            Part("DEO is lower, with a 95 % interval that excludes zero", lower),
            Part(
                "the accuracy of the group with the lowest is higher, with such an interval", better
            ),
        ),
        f"It is higher, with such an interval, in {share(higher[PRINTED])} cases as printed, "
        f"{share(higher[PARETO])} with our default and {share(higher[EXACT])} exactly. The accuracy of the group with "
        f"the lowest is lower, with such an interval, in {share(worse[PRINTED])}, {share(worse[PARETO])} and {share(worse[EXACT])}; that interval is for independent means, and wider than one for the same resamples. "
        "Linear SVM on ten dimensions, ten resamples of the training rows, all test rows; cases without "
        "positive predictions are left out. Means with 95 % intervals (no SDP on more than 60 columns; on "
        "raw codes its few digits are not enough, and it ends elsewhere than the exact solver). Figure 9a, "
        "the accuracy of each group, hardly changes.",
        ("classifier", "classifier_preprocessings"),
        ("\n".join(rows), "\n".join(accuracy)),
    )


def _worst_group(part: pd.DataFrame, frame: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """By how much the lowest accuracy of a group is above PCA's, and the half-width of an interval.

    That of a difference of independent means, which is too wide for the same resamples.
    """
    plain = frame[frame["reduction"] == PCA].set_index(["data", "preprocessing"]).loc[part.index]
    groups = [name for name in part if name.startswith("accuracy ") and not name.endswith("±")]
    lowest, widths = [], []
    for one in (part, plain):
        which = one[groups].idxmin(axis=1)
        lowest.append(one[groups].min(axis=1))
        widths.append([one.loc[case, f"{name} ±"] for case, name in which.items()])
    return lowest[0] - lowest[1], pd.Series(np.hypot(widths[0], widths[1]), part.index)


def complexity(evidence: Evidence) -> Claim:
    """The complexity table, measured."""
    table = evidence.exponents
    reached = table.groupby("method")["reached"].mean()
    slope = table.pivot(index="method", columns="axis", values="exponent")
    seconds = evidence.times.groupby("method")["seconds"].median()
    rows = [
        "| method | reached | median time | in d | in r | in k | in n |",
        "|---|---|---|---|---|---|---|",
    ]
    order = seconds.reindex(table["method"].unique()).sort_values()
    for method in order.index:
        cells = [
            ""
            if not np.isfinite(slope.loc[method].get(axis, np.nan))
            else f"{slope.loc[method, axis]:.1f}"
            for axis in "drkn"
        ]
        time = f"{1000 * order[method]:.2g} ms" if np.isfinite(order[method]) else "not reached"
        rows.append(
            f"| {look(method).label} | {100 * reached[method]:.0f} % | {time} | "
            f"{' | '.join(cells)} |"
        )
    sizes = evidence.times.groupby(["axis", "d", "r", "k", "n", "method"])["seconds"].median()
    sizes = sizes.unstack("method")
    fastest = sizes[EXACT] <= sizes.min(axis=1)
    seeds = evidence.times["seed"].nunique()
    return Claim(
        "Pareto descent needs O(r²d/ε²) against O(d^6.5 log 1/ε) for an SDP and O(d³/ε²) for "
        "multiplicative weights.",
        "table 1 and section 5.3",
        (
            *_faster_than_sdp(evidence.sdp),
            Part(
                "faster than multiplicative weights",
                {name: sizes[name] < sizes[WEIGHTS] for name in (PRINTED, PARETO, EXACT)},
            ),
        ),
        "Measured: solver time, without the groups' own subspaces and without certificates, until "
        "the largest disparity has come 95 % of the way from PCA's to the smallest possible, on "
        "random groups with falling spectra around d = 20, r = 4, k = 2, n = 20,000. Exponents are "
        "slopes on logarithmic scales over the sizes of the figure, where fixed costs still count, "
        "so they are not the asymptotic ones. The solvers work on the moments, so none depends "
        "on n; gathering the moments takes "
        f"{1000 * evidence.times['moments seconds'].median():.2g} ms in the median.\n\n"
        + "\n".join(rows)
        + "\n\n"
        + "In this table the SDP was not run beyond 40 columns. Pareto descent does not reach the target everywhere. The exact solver is the "
        f"fastest of all at {share(fastest)} sizes. Each time is the median of {seeds} random problems; "
        "the exponents in n, on which no solver depends, show how noisy the others are. The paper's "
        "count leaves out the d²r of the products A_i U, so its d cannot be linear for dense moments. "
        "A method appears in the figure where it reached the target in some problem. How many steps a "
        "short direction takes is in [pareto_variants.md](../pareto_variants.md): as printed it never "
        "becomes short; with tangent gradients far fewer than 1/ε² suffice.",
        ("times",),
        (_against_sdp(evidence.sdp), _cost_of_a_step(evidence)),
    )


def _faster_than_sdp(frame: pd.DataFrame) -> list[Part]:
    """Whether the target is reached before the semidefinite program is solved, by two solvers."""
    sizes = frame.pivot(index=["d", "seed"], columns="method", values="seconds")
    parts = []
    for backend, name in _BACKENDS.items():
        some = sizes[sizes[backend].notna()]
        faster = {method: some[method] < some[backend] for method in COLUMNS}
        parts.append(Part(f"faster than the SDP, solved by {name}", faster))
    return parts


def _against_sdp(frame: pd.DataFrame) -> str:
    medians = frame.groupby(["method", "d"])["seconds"].median().unstack("d")
    columns = {"clarabel": "SDP, Clarabel", "scs": "SDP, SCS", **COLUMNS}
    lines = [
        f"| processor time (ms), d = | {' | '.join(map(str, medians.columns))} |",
        "|---" * (1 + len(medians.columns)) + "|",
    ]
    for method, words in columns.items():
        cells = ["" if np.isnan(t) else _milliseconds(t) for t in medians.loc[method]]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _milliseconds(seconds: float) -> str:
    if not np.isfinite(seconds):
        return "not reached"
    return f"{1000 * seconds:,.0f}" if seconds >= 0.1 else f"{1000 * seconds:.2g}"


def _cost_of_a_step(evidence: Evidence) -> str:
    """Milliseconds of a step by columns and by groups; the number of steps is apart."""
    methods = (PRINTED, PARETO)
    lines = []
    for axis, words in (("d", "r = 4, k = 2"), ("k", "r = 4, d = 20")):
        part = only(evidence.steps, axis=axis)
        table = part.pivot(index="method", columns=axis, values="milliseconds")
        lines += [
            f"| cost of a step (ms), {words}, {axis} = | {' | '.join(map(str, table.columns))} | exponent |",
            "|---" * (2 + len(table.columns)) + "|",
        ]
        for method in methods:
            row = table.loc[method]
            slope = np.polyfit(np.log(row.index[-3:]), np.log(row[-3:]), 1)[0]
            cells = " | ".join(f"{t:.2g}" for t in row)
            lines.append(f"| {COLUMNS[method]} | {cells} | {slope:.1f} |")
        lines.append("")
    lines += ["| number of steps to the target, median | in d | in r | in k |", "|---|---|---|---|"]
    times = evidence.times[np.isfinite(evidence.times["seconds"])]
    for method in methods:
        counted: list[str] = []
        for axis in "drk":
            steps = only(times, axis=axis, method=method).groupby(axis)["steps"].median()
            counted.append(", ".join(f"{n:.0f} ({axis} = {size})" for size, n in steps.items()))
        lines.append(f"| {COLUMNS[method]} | {' | '.join(counted)} |")
    lines.append(
        "\nExponents are those of the three largest sizes. The default has the differences of neighbours up to five groups, and one objective for more."
    )
    return "\n".join(lines)


def exact_dimension(evidence: Evidence) -> Claim:
    """Whether r dimensions are enough."""
    frame = by_setting(evidence.methods)
    frame = frame[frame["data"] != "Diabetes"]
    two, more = frame[frame["sensitive"] == "sex"], frame[frame["sensitive"] != "sex"]
    rounded = (SDP, "sdp-iterative", "mw", WEIGHTS)

    def beyond(part: pd.DataFrame, name: str) -> pd.Series:
        one = part[part["method"] == name]
        return one["dimensions"] > one["r"]

    possible = ~more[more["method"] == EXACT]["status"].eq("infeasible")
    words_two, words = (
        ", ".join(f"{look(name).label} in {share(beyond(part, name))}" for name in rounded)
        for part in (two, more)
    )
    remedy = evidence.remedy.pivot(
        index=["data", "sensitive", "r"], columns="name", values="largest disparity"
    )
    cut = evidence.remedy[evidence.remedy["name"] == "remedy"].set_index(["data", "sensitive", "r"])
    fits = cut["dimensions"] <= cut.index.get_level_values("r")
    # Section 4.1: what is kept falls by at most the factor s/r.
    kept = evidence.remedy.pivot(index=["data", "sensitive", "r"], columns="name", values="kept")
    kept = kept.loc[cut.index]
    loses = 1.0 - kept["remedy"] / kept["exact"]
    allowed = cut["s"] / cut.index.get_level_values("r")
    worse = (remedy["remedy"] / remedy["exact"]).loc[cut.index]
    return Claim(
        "Pareto fair PCA needs no extra dimension, where SDP-based methods do, even for two groups.",
        "table 1, sections 4.1 and 5.3",
        (
            Part(
                "equality is possible in r dimensions, three and five groups", {PRINTED: possible}
            ),
            Part("the SDP needs more than r dimensions, two groups", {PRINTED: beyond(two, SDP)}),
            Part(
                "the SDP needs more than r dimensions, three and five groups",
                {PRINTED: beyond(more, SDP)},
            ),
        ),
        "For two groups the relaxation is exact, as Morgenstern et al. prove (the paper quotes it), and "
        f"needs no extra dimension when it is solved well; more than r are used by {words_two} cases. For "
        f"three and five groups more than r are used by {words} cases. The remedy of section 4.1, to aim at "
        f"r − s dimensions, ends with at most r in {share(fits)} cases; its largest disparity is "
        f"{span(worse, '.2g')} times the exact one, and the group that keeps least keeps "
        f"{span(100 * loses, '.2g', ' %')} less than with the exact optimum, within the factor s/r in "
        f"{share(loses <= allowed)} cases. Cut to exactly r, relaxations stay close "
        "([rivals.md](../rivals.md)).",
    )


def frontier(evidence: Evidence) -> Claim:
    """Different starts, different Pareto subspaces."""
    starts = only(evidence.starts, kind="start")
    widest = only(evidence.starts, kind="frontier").groupby(["data", "r"])["spread"].max()
    near, covered = {}, {}
    rows = [
        "| | r | starts within 0.1 heights of the frontier | farthest | part of its width that they cover |",
        "|---|---|---|---|---|",
    ]
    for name, words in ((PRINTED, "as printed"), (PARETO, "our default")):
        one = starts[starts["method"] == name]
        near[name] = one.set_index(["data", "r", "seed"])["heights"] <= 0.1
        by = one.groupby(["data", "r"])["spread"]
        width = (by.max() - by.min()) / widest.reindex(by.max().index)
        covered[name] = width >= 0.9
        for key, part in one.groupby(["data", "r"]):
            rows.append(
                f"| {key[0]}, {words} | {key[1]} | {share(part['heights'] <= 0.1)} | "
                f"{part['heights'].max():.2g} | {100 * width[key]:.0f} % |"
            )
    return Claim(
        "Different starting points lead to different Pareto fair subspaces, and form the frontier.",
        "remark 2",
        (
            Part("a random start ends within 0.1 heights of the frontier", near),
            Part("twenty starts cover 90 % of its width", covered),
        ),
        "One height is what equality costs above ordinary PCA. The frontier can be had whole, exactly, by "
        "solving for a range of tolerances, as the line in the figure was.",
        ("frontier",),
        ("\n".join(rows),),
    )


def step_rule(evidence: Evidence) -> Claim:
    """The step 1/sqrt(t) and the backtracking condition."""
    starts = only(evidence.starts, kind="start", method=PRINTED)
    fell = 100 * starts["all fell"]
    return Claim(
        "The learning rate 1/√t satisfies the decrease condition of the backtracking line search.",
        "section 6, experimental setup",
        (Part("every objective falls at every step of a run", {PRINTED: fell == 100.0}),),
        "The condition asks every objective to fall at every step. In the first 1,000 steps of "
        f"{len(fell)} printed runs from random starts, all fall in {span(fell, '.2g', ' %')} of the steps. "
        "It is no blemish: the steps that break the condition carry the search past the first fair "
        "subspaces, at which backtracking stops ([pareto_differences.md](../../docs/pareto_differences.md)).",
    )
