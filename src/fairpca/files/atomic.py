"""Writing files so that nobody ever sees half of one."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, which takes its place when all went well.

    A file that was there keeps its permissions, and a link stays a link. If the body fails or is
    interrupted, the temporary file goes and `path` stays as it was. Errors of writing name `path`.
    """
    # Through links, so that a link stays one and the rename stays within one file system.
    target = os.path.realpath(path)
    # A short name of its own: that of the target may already be as long as names can be.
    temporary = os.path.join(os.path.dirname(target), f".fairpca-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            with suppress(OSError):
                shutil.copymode(target, temporary)  # before there is anything in it to be seen
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:  # Ctrl-C, too
        with suppress(OSError):
            os.unlink(temporary)
        # About the file that was meant, unless the body has read another one.
        if not isinstance(error, OSError) or error.filename not in (None, temporary):
            raise
        # Of the class that belongs to the number.
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
