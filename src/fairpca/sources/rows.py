"""RowBatches: the rows of files, a batch at a time and as often as they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fairpca.tables.columns import ColumnChoice


class RowBatches:
    """Rows of files and their sensitive features, in batches, read anew each time.

    ``StochasticFairPCA.fit_batches`` goes through them once in each pass; nothing but a batch is in
    memory at a time. Files are read by the rules of `read_moments`.

    Parameters
    ----------
    source : path or list of paths
        Files that end in .parquet, .csv, .csv.gz, .arrow or .feather; folders with such files.
    sensitive_features : str or sequence of str
        The column that makes the groups; several make groups of their intersections.
    features : sequence of str, default=None
        The columns to reduce, numeric and without missing values; None takes all numeric ones.
    keep_sensitive : bool, default=False
        Whether sensitive columns that are numeric are among the features where these are not named.

    See Also
    --------
    fairpca.StochasticFairPCA : Takes them.
    fairpca.sources.read_moments : Moments of the same files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fairpca import StochasticFairPCA
    >>> from fairpca.datasets import load_credit
    >>> from fairpca.sources import RowBatches
    >>> credit = load_credit()
    >>> columns = (credit.data - credit.data.mean()) / credit.data.std()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "credit.parquet")
    ...     columns.assign(group=credit.sensitive_features).to_parquet(file)
    ...     batches = RowBatches(file, sensitive_features="group")
    ...     fair = StochasticFairPCA(5, n_passes=3).fit_batches(batches)
    >>> int(fair.group_table_.count.sum())
    30000
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path],
        *,
        sensitive_features: str | Sequence[str],
        features: Sequence[str] | None = None,
        keep_sensitive: bool = False,
    ) -> None:
        self.source = source
        self._choice = ColumnChoice.of(features, sensitive_features, None, keep_sensitive)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        # Here, so that pyarrow is imported where files are read only.
        import pandas
        import pyarrow

        from fairpca.sources.checkpoints import file_batches, list_files
        from fairpca.sources.record_batches import batch_numbers

        for batch, _, _ in file_batches(list_files(self.source), self._choice):
            rows = pandas.DataFrame(batch_numbers(batch), columns=list(batch.columns.features))
            yield rows, pyarrow.Table.from_batches([batch.rows]).select([*batch.columns.sensitive])
