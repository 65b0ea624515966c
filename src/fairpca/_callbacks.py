"""scikit-learn's callbacks, in the versions that have them (1.9 and newer)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's where it has none."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTask", "with_callbacks"]


class FitTask:
    """Fitting as a task, a solver's steps as its parts; idle without callbacks or steps."""

    def __init__(self, estimator: Any, n_steps: int) -> None:
        self._estimator = estimator
        self._context = None
        if n_steps and hasattr(estimator, "_skl_callbacks"):
            self._context = estimator._init_callback_context(max_subtasks=n_steps)
            self._context.call_on_fit_task_begin(estimator=estimator)

    @property
    def progress(self) -> Callable[[], bool] | None:
        """What a solver calls after each step; it returns whether to stop."""
        return None if self._context is None else self._step

    def end(self) -> None:
        """Report that fitting is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def _step(self) -> bool:
        assert self._context is not None
        step = self._context.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=self._estimator)
        return bool(step.call_on_fit_task_end(estimator=self._estimator))
