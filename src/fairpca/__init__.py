"""Fair principal component analysis: a subspace in which every group gives up the same.

`FairPCA` is the estimator, `audit` judges a reduction that is already in use. Underneath,
`GroupMoments` is what is kept of the data, `Problem` poses the question, `ExactSolver` answers it
with a `Solution`, and its `Certificate` says how good the answer provably is.
"""

from fairpca._audit import audit
from fairpca._estimator import FairPCA
from fairpca.exceptions import FairnessWarning
from fairpca.moments import GroupMoments
from fairpca.problem import Problem
from fairpca.solution import Certificate, Solution
from fairpca.solvers import ExactSolver, ParetoDescent
from fairpca.table import GroupTable

__version__ = "0.1.0"

__all__ = [
    "Certificate",
    "ExactSolver",
    "FairPCA",
    "FairnessWarning",
    "GroupMoments",
    "GroupTable",
    "ParetoDescent",
    "Problem",
    "Solution",
    "audit",
]
