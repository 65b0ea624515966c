"""Files that are replaced: permissions, links, and disks that are full."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from fairpca.files.atomic import replacing

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")


@posix
def test_a_file_that_is_replaced_keeps_its_permissions_from_the_beginning(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with replacing(path) as file:
        (temporary,) = (other for other in tmp_path.iterdir() if other != path)
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o640
        file.write(b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["secret"]


@posix
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "any").touch()
    with replacing(tmp_path / "new") as file:
        file.write(b"new")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "any").stat().st_mode


@posix
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("place", ["write", "fsync", "replace"])
def test_a_full_disk_is_said_of_the_file_and_leaves_nothing(tmp_path, monkeypatch, place):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "table"
    path.write_bytes(b"old")
    if place != "write":
        monkeypatch.setattr(os, place, full)

    def write():
        with replacing(path) as file:
            file.write(b"12345")
            file.flush()
            if place == "write":
                full()

    with pytest.raises(OSError) as caught:
        write()
    assert caught.value.filename == str(path)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(tmp_path) == ["table"]
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit there")
def test_a_file_larger_than_the_system_allows(tmp_path):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(OSError) as caught, replacing(tmp_path / "table") as file:
            file.write(bytes(50_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_is_said_of_the_file(tmp_path):
    path = tmp_path / "no" / "table"
    with pytest.raises(FileNotFoundError) as caught, replacing(path):
        pass
    assert caught.value.filename == str(path)


def test_errors_of_what_is_read_in_the_body_stay_what_they_are(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, replacing(tmp_path / "table"):
        Path(tmp_path / "source").read_bytes()
    assert caught.value.filename == str(tmp_path / "source")
    assert os.listdir(tmp_path) == []
