"""Files that are named: what is not overwritten, what cannot be written, and spreadsheets."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from fairpca.cli import main
from said import complaint

from people import FIT, contents

ABSENT = ["absent.csv", *FIT]
"""A table that is not there: whoever is refused before any work does not come to it."""

OUTPUTS = [
    ["fit", *ABSENT, "--model", "old.fairpca"],
    ["fit", *ABSENT, "--output", "old.csv"],
    ["report", *ABSENT, "--report", "old.html"],
    ["front", *ABSENT, "--model", "old.fairpca"],
    ["front", *ABSENT, "--output", "old.csv"],
    ["transform", "absent.csv", "--model", "absent.fairpca", "--output", "old.csv"],
]


def test_nothing_is_overwritten_unless_forced(folder, capsys):
    for arguments in OUTPUTS:
        path = Path(arguments[-1])
        path.write_text("old")
        before = contents()
        complaint(capsys, arguments, f"'{path}'", "there already", "--force")
        # With it, the next thing that is wrong is said.
        complaint(capsys, [*arguments, "--force"], "no", "file", "'absent.")
        assert contents() == before
        path.unlink()
    Path("link.csv").symlink_to("nowhere.csv")
    complaint(capsys, ["fit", *ABSENT, "--output", "link.csv"], "'link.csv'", "there already")


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_what_is_forced_keeps_its_permissions_and_links(folder, capsys):
    Path("real.fairpca").write_text("old")
    Path("real.fairpca").chmod(0o600)
    Path("m.fairpca").symlink_to("real.fairpca")
    Path("r.csv").write_text("old")
    Path("r.csv").chmod(0o664)
    files = ["--model", "m.fairpca", "--output", "r.csv", "--force"]
    assert main(["fit", "people.csv", *FIT, *files]) == 0
    assert Path("m.fairpca").is_symlink()
    modes = [stat.S_IMODE(os.stat(name).st_mode) for name in ("real.fairpca", "r.csv")]
    assert modes == [0o600, 0o664]
    assert Path("r.csv").read_text().startswith("fairpca0,fairpca1\n")
    capsys.readouterr()


def test_files_that_cannot_be_written_are_refused_before_any_work(folder, capsys, monkeypatch):
    long = "x" * 300 + ".csv"
    to = ["fit", *ABSENT, "--output"]
    complaint(capsys, [*to, long], f"'{long}'", "too long")
    complaint(capsys, [*to, "people.csv/r.csv"], "no folder")
    os.mkfifo("pipe.csv")
    complaint(capsys, [*to, "pipe.csv", "--force"], "'pipe.csv'", "regular file")
    # Root may do everything, and tests may run as root.
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK or Path(path).is_dir())
    Path("r.csv").write_text("old")
    complaint(capsys, [*to, "r.csv", "--force"], "'r.csv'", "written")
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    complaint(capsys, [*to, "fresh.csv"], "'fresh.csv'", "written")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("p.xlsx", "other programs as CSV"),
        ("p.doc", "end '.csv', '.parquet',"),
    ],
)
def test_files_of_other_programs(folder, capsys, name, words):
    Path(name).touch()
    for command in (["fit", *FIT], ["audit", *FIT], ["front", *FIT]):
        complaint(capsys, [command[0], name, *command[1:]], f"'{name}'", *words.split())
    # What is written has a suffix of ours.
    complaint(capsys, ["fit", *ABSENT, "--output", "new.xlsx"], "'new.xlsx'", "end", "'.csv'")


def test_several_columns_in_one_option(folder, capsys):
    on = ["people.csv", "--n-components", "2"]
    fit = ["fit", *on, "--sensitive"]
    complaint(capsys, [*fit, "sex,race"], "no column", "'sex,race'", "repeated", "'sex', 'race'")
    carried = ["--carry", "a,b", "--output", "r.csv"]
    complaint(capsys, [*fit, "sex", *carried], "repeated", "'a', 'b'")
    assert "repeat" not in complaint(capsys, [*fit, "sex,age"])


def test_options_and_commands_that_are_mistyped(capsys):
    complaint(capsys, ["fti"], "'fti'", "'fit'", "--help")
    complaint(capsys, ["fit", "--sensitiv", "sex"], "--sensitiv", "--sensitive", "--help")


def test_a_full_disk_names_the_file(folder, capsys, monkeypatch):
    """The second file meets it; the first stays, and of the second nothing is left."""
    write, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    before = sorted(os.listdir())
    files = ["--output", "r.csv", "--model", "m.fairpca"]
    words = ("'m.fairpca'", "no space left")
    complaint(capsys, ["fit", "people.csv", *FIT, *files], *words, code=1)
    assert sorted(os.listdir()) == sorted([*before, "r.csv"])


def test_other_refusals_of_the_system_are_one_sentence(folder, capsys, monkeypatch):
    def fail(error):
        def failing(*_, **__):
            raise error

        return failing

    for error, words in [
        (
            PermissionError(errno.EACCES, "Permission denied", "a.csv"),
            "'a.csv' permission denied",
        ),
        (
            OSError(errno.EIO, "Input/output error", "a.csv"),
            "'a.csv' input/output error",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "go on no space left"),
        (OSError(errno.ENXIO, "No such device or address", "x"), "'x' no such device"),
    ]:
        monkeypatch.setattr("fairpca.cli._fitting.fit_fair", fail(error))
        shown = complaint(capsys, ["fit", "people.csv", *FIT], *words.split(), code=1)
        assert "Errno" not in shown
