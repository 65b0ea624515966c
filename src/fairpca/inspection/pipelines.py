"""The reduction inside a pipeline, and the rows that reach it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.base import OneToOneFeatureMixin
from sklearn.pipeline import Pipeline

from fairpca.text import listed


@dataclass(frozen=True, eq=False)
class Step:
    """A reduction, and the steps of its pipeline that rows go through first."""

    reduction: Any
    before: tuple[Any, ...] = ()

    def rows(self, X: Any) -> Any:
        """The rows as they reach the reduction."""
        for step in self.before:
            X = step.transform(X)
        return X


def find_reduction(
    estimator: Any, user: str, needed: tuple[str, ...] = ("transform", "inverse_transform")
) -> Step:
    """The reduction that an estimator is, or the last one in a pipeline.

    A pipeline may end in a classifier. Its reduction is the last step that has what is needed and
    is no scaling or other change of each column by itself. Pipelines inside it count as its steps.

    Parameters
    ----------
    estimator : transformer or Pipeline
    user : str
        What asks, for messages.
    needed : tuple of str, default=("transform", "inverse_transform")
        Attributes that the reduction must have.

    Returns
    -------
    Step

    Raises
    ------
    TypeError
        If there is none.
    """
    if isinstance(estimator, Pipeline):
        steps = tuple(_flat(estimator))
        for i in reversed(range(len(steps))):
            one_to_one = isinstance(steps[i], OneToOneFeatureMixin)
            if not one_to_one and all(hasattr(steps[i], name) for name in needed):
                return Step(steps[i], steps[:i])
        raise TypeError(
            f"{user} needs a step with {' and '.join(needed)} that reduces all columns together, "
            f"such as PCA, and this pipeline has {listed([type(step).__name__ for step in steps])}."
        )
    for name in needed:
        if not hasattr(estimator, name):
            raise TypeError(
                f"{user} needs a transformer with {name}, which {type(estimator).__name__} has not."
            )
    return Step(estimator)


def _flat(pipeline: Pipeline) -> Iterator[Any]:
    """The steps of a pipeline that do something, in order."""
    for _, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from _flat(step)
        elif step is not None and not isinstance(step, str):  # which is "passthrough"
            yield step
