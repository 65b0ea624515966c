"""How experiments run: side by side, with a progress bar, remembered until the code changes."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

import joblib
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from fairpca import FairnessWarning

ROOT = Path(__file__).parents[2]
CACHE = Path(os.environ.get("FAIRPCA_EXPERIMENTS_CACHE", ROOT / ".experiments-cache"))


@dataclass(frozen=True)
class Task:
    """A remembered function with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    label: str


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Changes with any line of the library or of the experiments, but for drawing and claims."""
    digest = hashlib.sha256()
    for folder in (ROOT / "src" / "fairpca", Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            if path.parent.name not in ("plots", "claims") and path.name != "__main__.py":
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep results on disk, as long as the code is the same."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        key = joblib.hash((function.__module__, function.__name__, arguments))
        path = CACHE / source_digest() / f"{key}.joblib"
        if path.exists():
            return joblib.load(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = function(*arguments)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        joblib.dump(result, part)
        part.replace(path)
        return result

    return run


def run_all(
    tasks: Sequence[Task], title: str, *, n_jobs: int = 2, quiet: bool = False
) -> list[Any]:
    """The results of all tasks, in their order."""
    if n_jobs == 1:
        bar = tqdm(tasks, desc=title, disable=quiet)
        return [task.function(*task.arguments) for task in bar]
    calls = (joblib.delayed(task.function)(*task.arguments) for task in tasks)
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        results = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(calls)
        return list(tqdm(results, total=len(tasks), desc=title, disable=quiet))
