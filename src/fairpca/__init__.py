"""Fair principal component analysis: no group loses much more than with a PCA of its own.

`FairPCA` is the estimator, `KernelFairPCA` does the same in the feature space of a kernel, and
`StochasticFairPCA` takes mini-batches where covariances do not fit into memory. `audit`
judges a reduction that is already in use, `compare` judges on held-out rows whether fair PCA is
needed at all, and `pareto_front` has every trade-off between total loss and the largest disparity.
Underneath, `GroupMoments` is what is kept of the data, `Problem` poses the question by a criterion
(`SoftMinMax`, `MinMax`, `Equal`, `AtMost`, `Balanced`), `ExactSolver` answers it
with a `Solution`, and its `Certificate` has the proven distance to the optimum. `ParetoDescent` is
the gradient method of Kamani et al.; `fairpca.objectives` has what it can minimise. Methods to
compare with are in `fairpca.solvers` and in `fairpca.comparators` (another notion of fairness).
`fairpca.datasets` holds two data sets of the literature, `fairpca.metrics` functions for
fairlearn and scores on held-out rows, and `fairpca.pp` functions for AnnData and scanpy.

>>> from fairpca import FairPCA
>>> from fairpca.datasets import load_adult
>>> adult = load_adult(as_frame=False)
>>> fair = FairPCA(2).fit(adult.data, sensitive_features=adult.sensitive_features)
>>> fair.transform(adult.data).shape
(32561, 2)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairpca._version import __version__ as __version__

if TYPE_CHECKING:
    from fairpca.certificate import Certificate as Certificate
    from fairpca.criteria import AtMost as AtMost
    from fairpca.criteria import Balanced as Balanced
    from fairpca.criteria import Equal as Equal
    from fairpca.criteria import MinMax as MinMax
    from fairpca.criteria import SoftMinMax as SoftMinMax
    from fairpca.exceptions import FairnessWarning as FairnessWarning
    from fairpca.fair_pca import FairPCA as FairPCA
    from fairpca.group_table import GroupTable as GroupTable
    from fairpca.inspection.audit import Loadings as Loadings
    from fairpca.inspection.audit import audit as audit
    from fairpca.inspection.compare import Comparison as Comparison
    from fairpca.inspection.compare import compare as compare
    from fairpca.inspection.pareto_front import ParetoFront as ParetoFront
    from fairpca.inspection.pareto_front import pareto_front as pareto_front
    from fairpca.kernel import KernelFairPCA as KernelFairPCA
    from fairpca.moments import GroupMoments as GroupMoments
    from fairpca.problem import Problem as Problem
    from fairpca.solution import Solution as Solution
    from fairpca.solvers import ExactSolver as ExactSolver
    from fairpca.solvers import ParetoDescent as ParetoDescent
    from fairpca.stochastic import StochasticFairPCA as StochasticFairPCA

_NAMES = {
    "certificate": ("Certificate",),
    "criteria": ("AtMost", "Balanced", "Equal", "MinMax", "SoftMinMax"),
    "exceptions": ("FairnessWarning",),
    "fair_pca": ("FairPCA",),
    "group_table": ("GroupTable",),
    "inspection.audit": ("Loadings", "audit"),
    "inspection.compare": ("Comparison", "compare"),
    "inspection.pareto_front": ("ParetoFront", "pareto_front"),
    "kernel": ("KernelFairPCA",),
    "moments": ("GroupMoments",),
    "problem": ("Problem",),
    "solution": ("Solution",),
    "solvers": ("ExactSolver", "ParetoDescent"),
    "stochastic": ("StochasticFairPCA",),
}
"""The public names by their modules: these are loaded when a name is asked for, so that the
program's help and version need not wait for NumPy and scikit-learn."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Load a public name, or a module of this package."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":  # what the module itself needs
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
