"""Writing files so that nobody ever sees half of one."""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What only writing can meet; other errors of a body, which also reads, are of something else."""


class NotWrittenError(OSError):
    """A full disk: `filename` says which file was lost, and `written` how many bytes were."""

    written: int = 0


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, which takes its place when all went well.

    A file that was there keeps its permissions, and a link stays a link. If the body fails or is
    interrupted, the temporary file goes and `path` stays as it was. A full disk is a
    `NotWrittenError`; other errors name `path`.
    """
    # Through links, so that a link stays one and the rename stays within one file system.
    target = os.path.realpath(path)
    # A short name of its own: that of the target may already be as long as names can be.
    temporary = os.path.join(os.path.dirname(target), f".fairpca-{secrets.token_hex(8)}.tmp")
    written, in_body = 0, False
    try:
        with open(temporary, "xb") as file:
            with suppress(OSError):
                shutil.copymode(target, temporary)  # before there is anything in it to be seen
            in_body = True
            yield file
            in_body = False
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:  # Ctrl-C, too
        with suppress(OSError):
            written = os.stat(temporary).st_size
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        # About the file that was meant, not the temporary one.
        about = error.errno, error.strerror or str(error), str(path)
        if error.errno in _FULL:
            failed = NotWrittenError(*about)
            failed.written = written
            raise failed from error
        if in_body:
            raise
        raise OSError(*about) from error  # of the class that belongs to the number
