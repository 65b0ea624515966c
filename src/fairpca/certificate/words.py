"""What a certificate says, in plain words."""

import decimal
from typing import Any

_SAYS_NOTHING = 1e-9
"""A bound on the spread, relative to the spread, that is not worth a sentence."""

_ROUNDINGS = 10.0
"""How many times what rounding can cause is still rounding."""

NOUNS = {
    ("disparity", False): "disparity",
    ("disparity", True): "relative disparity",
    ("loss", False): "loss",
    ("loss", True): "share lost",
    ("variance", False): "kept variance",
    ("variance", True): "share kept",
}

_PLURALS = {
    "disparity": "disparities",
    "relative disparity": "relative disparities",
    "loss": "losses",
    "share lost": "shares lost",
    "kept variance": "kept variances",
    "share kept": "shares kept",
}

_KEPT = ("kept variance", "share kept")
"""Measures of which more is better: they have a minus sign."""

_LEVELS = (
    "with criterion='minmax' no group is worse off than here, and {plural} are lower by {gains}, "
    "though not equal."
)

_MIXTURES = (
    "For every mixture of the criterion's groups, measured from the fitted mean and with mean "
    "losses, the {noun} from the mixture's own best subspace is at most {at_most}, and no subspace "
    "has a "
)

_CHEAP = "subspaces of this dimension that lose at most {extra} % more than the least total loss"

_SENTENCES = {
    "shrunk": "All that follows is about the groups' covariances after shrinking them towards that "
    "of all rows, as if each group had {shrinkage} more rows from there; the table of the groups "
    "is about the rows themselves.",
    "shrunk to one": "Every group's covariance was replaced by that of all rows, so the result is "
    "that of ordinary PCA.",
    "all worse off": "Every group is worse off than with ordinary PCA, by {changes}.",
    "extra dimensions": "Uses {used} dimensions, {more} more than the {r} asked for.",
    "minmax, relaxed": "No group has a {noun} above {at_most}; in a subspace of {r} dimensions "
    "some group has at least {at_least}.",
    "minmax, relaxed, kept": "Every group has a {noun} of at least {keeps}; in a subspace of {r} "
    "dimensions some group has at most {can_keep}.",
    "equal, relaxed": "{Plural} differ by {spread} at a total loss of {at_most}; a subspace of "
    "{r} dimensions in which they differ by no more loses at least {at_least}.",
    "minmax, optimal": "Proven optimal: in every subspace of this dimension some group has a "
    "{noun} of at least {at_least}, and here none has more than {at_most}.",
    "minmax, optimal, kept": "Proven optimal: in every subspace of this dimension some group has a "
    "{noun} of at most {can_keep}, and here none has less than {keeps}.",
    "minmax, bounded": "No group has a {noun} above {at_most}; no subspace of this dimension "
    "can bring the largest one below {at_least}.",
    "minmax, bounded, kept": "No group has a {noun} below {keeps}; no subspace of this dimension "
    "can bring the smallest one above {can_keep}.",
    "max_extra_loss, optimal": f"Proven optimal: in all {_CHEAP}, some group has a {{noun}} of at "
    "least {at_least}, and here none has more than {at_most}.",
    "max_extra_loss, optimal, kept": f"Proven optimal: in all {_CHEAP}, some group has a {{noun}} "
    "of at most {can_keep}, and here none has less than {keeps}.",
    "max_extra_loss, bounded": "No group has a {noun} above {at_most}; of "
    f"{_CHEAP}, none can bring the largest one below {{at_least}}.",
    "max_extra_loss, bounded, kept": "No group has a {noun} below {keeps}; of "
    f"{_CHEAP}, none can bring the smallest one above {{can_keep}}.",
    "equal, optimal": "Proven optimal: all groups have {within} at a total loss of {loss}, and no "
    "subspace of this dimension that does the same loses less.",
    "equal, bounded": "All groups have {within}, at a total loss of {loss}; no subspace of this "
    "dimension that does the same can lower it by more than {gap} %.",
    "equal, infeasible": "Proven impossible: in every subspace of this dimension the {plural} "
    "of two groups differ by at least {least_miss}. The smallest difference that was found is "
    "{spread}.",
    "equal, unresolved": "No subspace of this dimension with {within} was found, and none is "
    "proven impossible. The smallest difference that was found is {spread}.",
    "bounds, optimal": "Proven optimal: all bounds are met at a total loss of {loss}, "
    "and no subspace of this dimension that does the same loses less.",
    "bounds, bounded": "All bounds are met, at a total loss of {loss}; no subspace of "
    "this dimension that does the same can lower it by more than {gap} %.",
    "bounds, infeasible": "Proven impossible: in every subspace of this dimension some group "
    "misses its bound by at least {least_miss}. Here none misses it by more than {miss}, the "
    "smallest that was found.",
    "bounds, unresolved": "No subspace of this dimension that meets all bounds was "
    "found, and none is proven impossible. Here none misses it by more than {miss}, the smallest "
    "that was found.",
    "least spread": "In every subspace of this dimension the {plural} of two groups differ by "
    "at least {least_miss}.",
    "unmet": "{asked} were not reached: this solver has a criterion of its own.",
    "levels down": f"Equality levels down here: {_LEVELS}",
    "alternative": f"There is an alternative: {_LEVELS}",
    "doubt": "The groups' own subspaces are only known nearly: their disparities can be larger "
    "than measured by {error}, for which all this allows.",
    "rounded": "Rounding can move these numbers by about {rounding}, which leaves the rest open: "
    "where one column varies far more than others, standardise the columns.",
    "stopped by gap": "The search ended there: the gap is as small as was asked for.",
    "stopped by time limit": "The search ended at its time limit, and may do better with more.",
    "stopped by callback": "The search was stopped by a callback, and may do better if it goes on.",
    "nested": "The components are nested, each the best given those before it: a subspace that is "
    "not nested may be fairer.",
    "mixtures, optimal": f"{_MIXTURES}smaller worst case.",
    "mixtures, bounded": f"{_MIXTURES}worst case below {{at_least}}.",
}


def _is_rounded(certificate: Any) -> bool:
    """Whether rounding is what keeps a subspace from being called equal or optimal."""
    met, limit = certificate.status in ("optimal", "bounded"), _ROUNDINGS * certificate.rounding
    unequal = certificate.goal == "equal" and certificate.said_spread > 0.0
    return met and (unequal or (certificate.status == "bounded" and certificate.gap <= limit))


def _within(apart: str, plural: str) -> str:
    return f"equal {plural}" if apart == "0" else f"{plural} within {apart} of each other"


def _counted(n: int, *, first: bool) -> str:
    verb = ("is " if n == 1 else "are ") if first else ""
    noun = (" group" if n == 1 else " groups") if first else ""
    return f"{'one' if n == 1 else n}{noun} {verb}".rstrip()


def sentences_of(certificate: Any) -> list[str]:
    """A certificate in plain words; bounds are rounded to the safe side."""
    asked, met = certificate.requested_tolerance, certificate.status in ("optimal", "bounded")
    equal, levels_down = certificate.goal == "equal", certificate.minmax_measures is not None
    apart = certificate.miss_bound > _SAYS_NOTHING * max(certificate.spread, certificate.tolerance)
    kept = certificate.measure in _KEPT and certificate.goal in ("minmax", "max_extra_loss")
    finding = f"{certificate.goal}, {certificate.status}" + (", kept" if kept else "")
    said = {
        "shrunk": certificate.shrinkage > 0.0,
        "all worse off": certificate.all_worse_off,
        "extra dimensions": certificate.status == "relaxed",
        finding: True,
        f"stopped by {certificate.stopped_by}": bool(certificate.stopped_by),
        "least spread": equal and met and apart,
        "unmet": equal and asked is not None and certificate.tolerance > asked,
        "levels down": levels_down and met,
        "alternative": levels_down and not met,
        "doubt": certificate.own_error > 0.0,
        "rounded": _is_rounded(certificate),
        "nested": certificate.is_nested,
    }
    facts = _facts(certificate)
    if len(certificate.measures) == 1:
        alone = "One group: the result is that of ordinary PCA."
        missed = certificate.status in ("infeasible", "unresolved")
        return [alone, _SENTENCES[finding].format(**facts)] if missed else [alone]
    if certificate.shrinkage == float("inf"):
        return [_SENTENCES["shrunk to one"]]
    words = [_SENTENCES[name].format(**facts) for name, holds in said.items() if holds]
    words += [] if certificate.all_worse_off else [_compared_with_pca(certificate)]
    if certificate.covers_mixtures and met and certificate.shrinkage == 0.0:
        words.append(_SENTENCES[f"mixtures, {certificate.status}"].format(**facts))
    return words


def _compared_with_pca(certificate: Any) -> str:
    """How many groups are better and worse off, and the largest gain and loss."""
    change = certificate.change_from_pca
    parts: list[str] = []
    for sizes, how in ((-change[change < 0], "better"), (change[change > 0], "worse")):
        if len(sizes):
            count = _counted(len(sizes), first=not parts)
            largest = f"{'up to ' if len(sizes) > 1 else ''}{float(sizes.max()):.3g}"
            parts.append(f"{count} {how} off, by {largest}")
    if not parts:
        return "No group is better or worse off than with ordinary PCA."
    reason = ": some group always is, because ordinary PCA has the least total loss"
    why = reason if len(parts) == 2 and certificate.pca_is_least else ""
    return f"Compared with ordinary PCA, {', and '.join(parts)}{why}."


def _facts(certificate: Any) -> dict[str, object]:
    noun, plural = certificate.measure, _PLURALS[certificate.measure]
    apart = certificate.tolerance
    if certificate.own_error > 0.0 or certificate.said_spread > 0.0:
        apart = max(apart, certificate.spread)
    within, asked = rounded(apart, 6, up=True), f"{certificate.requested_tolerance or 0:g}"
    most, change = 0.0, certificate.change_from_pca
    if certificate.minmax_measures is not None:
        most = float((certificate.measures - certificate.minmax_measures).max())
    kept = certificate.measure in _KEPT

    def limit(number: float, *, up: bool) -> str:
        # An optimum is known up to rounding, so that there is no safe side.
        near = certificate.status == "optimal"
        return f"{number + 0.0:.6g}" if near else rounded(number, 6, up=up)

    return {
        "noun": noun,
        "plural": plural,
        "Plural": plural.capitalize(),
        "within": _within(within, plural),
        "asked": _within(asked, plural).capitalize(),
        "at_most": limit(certificate.value, up=True),
        "at_least": limit(certificate.lower_bound, up=False),
        "keeps": limit(-certificate.value, up=False) if kept else "",
        "can_keep": limit(-certificate.lower_bound, up=True) if kept else "",
        "loss": f"{certificate.value:.6g}",
        "gap": rounded(100 * certificate.relative_gap, 2, up=True),
        "spread": f"{certificate.spread:.6g}",
        "shrinkage": f"{certificate.shrinkage:g}",
        "miss": f"{certificate.miss:.6g}",
        "least_miss": rounded(certificate.miss_bound, 6, up=False),
        "gains": f"{certificate.least_gain:.3g} to {most:.3g}",
        "changes": f"{change.min():.3g} to {change.max():.3g}",
        "extra": f"{100 * (certificate.extra_loss or 0.0):g}",
        "rounding": rounded(_ROUNDINGS * certificate.rounding, 1, up=True),
        "error": rounded(certificate.own_error, 2, up=True),
        "r": certificate.n_components,
        "used": certificate.n_dimensions,
        "more": certificate.n_dimensions - certificate.n_components,
    }


def rounded(number: float, digits: int, *, up: bool) -> str:
    """The number to so many significant digits, not below it (up) or not above it."""
    context = decimal.Context(
        prec=digits, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    )
    return f"{context.create_decimal_from_float(number).normalize(context):g}"
