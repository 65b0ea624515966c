"""Criteria from single choices, for tests that run through combinations of them."""

from fairpca import ParetoFront
from fairpca.criteria import AtMost, Equal, MinMax, as_criterion

_CHOICES = ("criterion", "tolerance", "measure", "relative", "bounds", "max_extra_loss")
_NAMES = {
    ("disparity", False): "disparity",
    ("disparity", True): "relative_disparity",
    ("loss", False): "loss",
    ("loss", True): "share_lost",
    ("variance", False): "kept_variance",
    ("variance", True): "share_kept",
}


def asked(
    criterion="minmax",
    tolerance=0.0,
    measure="disparity",
    relative=False,
    bounds=None,
    max_extra_loss=None,
):
    """The criterion of these choices."""
    name = _NAMES.get((measure, bool(relative)), measure)
    if bounds is not None:
        return AtMost(bounds, name)
    if criterion == "equal":
        return Equal(tolerance, name)
    if criterion == "minmax":
        return MinMax(name, max_extra_loss)
    return as_criterion(criterion)


def with_criterion(choices):
    """Keyword arguments with a criterion in the place of single choices."""
    given = {name: value for name, value in choices.items() if name in _CHOICES}
    rest = {name: value for name, value in choices.items() if name not in _CHOICES}
    if "loss" in rest:
        rest["aggregation"] = rest.pop("loss")
    return {"criterion": asked(**given), **rest}


def front_over(problem, *given, over="largest", **options):
    """The front of a problem over the largest measure or the spread, whatever its criterion."""
    end = (MinMax if over == "largest" else Equal)(measure=problem.goal.measure)
    return ParetoFront.from_problem(problem.with_criterion(end), *given, **options)
