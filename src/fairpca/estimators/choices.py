"""The parameters of FairPCA: which of them are allowed, and the solver that they name."""

from dataclasses import fields
from functools import partial
from numbers import Integral, Real
from typing import Any

from fairpca._rows.checks import check_choice, check_flag, check_seed
from fairpca._rows.choices import CENTERINGS, LOSSES, check_fairness
from fairpca._rows.labels import GROUPINGS
from fairpca.estimators.shrinkage import check_shrinkage
from fairpca.solvers import SOLVERS, Nested, Solver, check_nested, has_own_criterion

_FAIRNESS = ("criterion", "tolerance", "measure", "relative", "bounds", "max_extra_loss")

PROBLEM_CHOICES = (*_FAIRNESS, "loss", "centering")
"""Parameters that are those of a `Problem`."""


def checked_solver(fair: Any) -> Solver:
    """The solver that an estimator's parameters name; wrong ones are refused before any work."""
    check_n_components(fair.n_components)
    check_fairness(*(getattr(fair, name) for name in _FAIRNESS))
    check_shrinkage(fair.shrinkage)
    check_choice("loss", fair.loss, LOSSES)
    check_choice("centering", fair.centering, CENTERINGS)
    for name in ("nested", "whiten", "keep_sensitive"):
        check_flag(name, getattr(fair, name))
    check_choice("groups", fair.groups, GROUPINGS)
    check_seed(fair.random_state)
    solver: Any = _named_solver(fair.solver, fair.random_state)
    if fair.nested:
        limited = fair.bounds is not None or fair.max_extra_loss is not None
        check_nested("limited" if limited else fair.criterion, solver)
        solver = Nested(solver)
    elif has_own_criterion(solver):
        given = {
            "measure": fair.measure != "disparity",
            "relative": bool(fair.relative),
            "bounds": fair.bounds is not None,
            "max_extra_loss": fair.max_extra_loss is not None,
        }
        asked = [name for name, is_given in given.items() if is_given]
        if asked:
            raise ValueError(
                f"solver={fair.solver!r} has a criterion of its own, and cannot do "
                f"{' and '.join(asked)}: leave out one or the other."
            )
    checked: Solver = solver
    return checked


def check_n_components(n: object) -> None:
    """Raise ValueError unless this is None, a number of dimensions or a share."""
    whole = isinstance(n, Integral) and not isinstance(n, bool)
    share = isinstance(n, Real) and not isinstance(n, Integral)
    if not (n is None or (whole and int(n) >= 1) or (share and 0.0 < float(n) < 1.0)):  # type: ignore[call-overload,arg-type]
        raise ValueError(
            "n_components must be None, an integer of at least 1, or a share strictly "
            f"between 0 and 1, got {n!r}."
        )


def _named_solver(given: Any, random_state: int | None) -> Any:
    if isinstance(given, type | partial):
        made: Any = getattr(given, "func", given)
        raise ValueError(
            f"solver must be an instance, not the class {made.__name__}: write "
            f"solver={made.__name__}()."
        )
    if hasattr(given, "solve"):
        return given
    check_choice("solver", given, ("auto", *SOLVERS))
    make: Any = SOLVERS["exact" if given == "auto" else given]
    known = {field.name for field in fields(getattr(make, "func", make))}
    return make(random_state=random_state) if "random_state" in known else make()
