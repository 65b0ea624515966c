"""Which files a path, a folder or a list of them means."""

import os
from collections.abc import Sequence
from pathlib import Path

from fairpca.choices import READABLE
from fairpca.tables.columns import MOST_NAMES
from fairpca.tables.reading import TableFile, suffix_of
from fairpca.text import listed


def list_files(source: str | Path | Sequence[str | Path]) -> list[TableFile]:
    """The files of a path, a folder with all its subfolders, or a list of them."""
    paths = [source] if isinstance(source, str | os.PathLike) else source
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inside = _folder(path)
            if not inside:
                raise ValueError(f"The folder {str(path)!r} has no files.")
            found += inside
        elif path.exists():
            found.append(path)
        else:
            raise FileNotFoundError(f"There is no file or folder {str(path)!r}.")
    unknown = [str(path) for path in found if not suffix_of(path)]
    if unknown:
        raise ValueError(
            f"Files must end in one of {listed(READABLE)}: {listed(unknown, MOST_NAMES)}; pass a "
            "list of the files that are meant."
        )
    found = [Path(os.path.abspath(path)) for path in found]
    repeated = [str(path) for path in dict.fromkeys(found) if found.count(path) > 1]
    if repeated:
        raise ValueError(f"Files are named twice: {listed(repeated, MOST_NAMES)}.")
    return [TableFile.of(path) for path in found]


def _folder(folder: Path) -> list[Path]:
    """Its files in the order of their names, without those that are hidden or begin with "_"."""
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    return [
        path
        for path in inside
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
