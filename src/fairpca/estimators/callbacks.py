"""Who is told of a solver's steps: scikit-learn's callbacks (from 1.9 on), and a listener."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for scikit-learn's where it has none."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "FitTask", "listening", "with_callbacks"]

Listener = Callable[..., None]
"""Told how many steps of how many are done, and by name what a solver says of them."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell the listener of the steps of each fit in the body, with any version of scikit-learn."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


class FitTask:
    """Fitting as a task, a solver's steps as its parts; idle without listeners or steps."""

    def __init__(self, estimator: Any, n_steps: int) -> None:
        self._estimator = estimator
        self._n_steps = n_steps
        self._listener = _listener.get()
        self._context = None
        if n_steps and hasattr(estimator, "_skl_callbacks"):
            self._context = estimator._init_callback_context(max_subtasks=n_steps)
            self._context.call_on_fit_task_begin(estimator=estimator)

    def steps(self) -> Callable[..., bool] | None:
        """What a solver calls after each step of one run; it returns whether to stop."""
        listened_to = self._context is not None or self._listener is not None
        return partial(self._step, count(1)) if self._n_steps and listened_to else None

    def end(self) -> None:
        """Report that fitting is done."""
        if self._context is not None:
            self._context.call_on_fit_task_end(estimator=self._estimator)

    def _step(self, done: Iterator[int], **found: float) -> bool:
        if self._listener is not None:
            self._listener(next(done), self._n_steps, **found)
        if self._context is None:
            return False
        step = self._context.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=self._estimator)
        return bool(step.call_on_fit_task_end(estimator=self._estimator))
