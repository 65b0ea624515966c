"""Files that are named: what is not overwritten, what cannot be written, and spreadsheets."""

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from fairpca.cli import main
from said import without_cautions

from people import FIT, contents

ABSENT = ["absent.csv", *FIT]
"""A table that is not there: whoever is refused before any work does not come to it."""

OUTPUTS = [
    ["fit", *ABSENT, "--model", "old.fairpca"],
    ["fit", *ABSENT, "--output", "old.csv"],
    ["fit", *ABSENT, "--report", "old.html"],
    ["audit", *ABSENT, "--report", "old.html"],
    ["report", *ABSENT, "--report", "old.html"],
    ["front", *ABSENT, "--model", "old.fairpca"],
    ["front", *ABSENT, "--output", "old.csv"],
    ["front", *ABSENT, "--points-output", "old.csv"],
    ["transform", "absent.csv", "--model", "absent.fairpca", "--output", "old.csv"],
]


def refused(capsys, *arguments, code=2):
    assert main([*arguments]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    said = without_cautions(shown.err)
    assert said.count("\n") == 1
    return said.removeprefix("fairpca: ").rstrip("\n")


def test_nothing_is_overwritten_unless_forced(folder, capsys):
    for arguments in OUTPUTS:
        path = Path(arguments[-1])
        path.write_text("old")
        before = contents()
        assert refused(capsys, *arguments) == (
            f"'{path}' is there already: name another file, or replace it with --force."
        )
        # With it, the next thing that is wrong is said.
        assert "there is no file 'absent." in refused(capsys, *arguments, "--force")
        assert contents() == before
        path.unlink()
    Path("link.csv").symlink_to("nowhere.csv")
    said = refused(capsys, "fit", *ABSENT, "--output", "link.csv")
    assert said.startswith("'link.csv' is there already")


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
    said = refused(capsys, "fit", *ABSENT, "--output", long)
    assert said == f"cannot write '{long}': the name is too long."
    said = refused(capsys, "fit", *ABSENT, "--output", "people.csv/r.csv")
    assert said.startswith("there is no folder ")
    os.mkfifo("pipe.csv")
    said = refused(capsys, "fit", *ABSENT, "--output", "pipe.csv", "--force")
    assert said == "'pipe.csv' is not a regular file: name another one."
    # Root may do everything, and tests may run as root.
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK or Path(path).is_dir())
    Path("r.csv").write_text("old")
    said = refused(capsys, "fit", *ABSENT, "--output", "r.csv", "--force")
    assert said == "'r.csv' may not be written to: name another file."
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    said = refused(capsys, "fit", *ABSENT, "--output", "fresh.csv")
    assert said == f"the folder '{os.path.realpath('.')}' cannot be written to."


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("p.xlsx", 'is a spreadsheet: save its sheet as "CSV UTF-8" and name that file.'),
        ("p.ODS", 'is a spreadsheet: save its sheet as "CSV UTF-8" and name that file.'),
        ("p.sav", "is a file of another program: export it as CSV and name that file."),
        ("p.zip", "is an archive: unpack it and name the table in it."),
        ("p.doc", "must end in one of '.csv', '.parquet', "),
    ],
)
def test_files_of_other_programs(folder, capsys, name, said):
    Path(name).touch()
    for command in (["fit", *FIT], ["audit", *FIT], ["front", *FIT]):
        assert refused(capsys, command[0], name, *command[1:]).startswith(f"'{name}' {said}")
    # What is written has a suffix of ours.
    wrong = refused(capsys, "fit", *ABSENT, "--output", "new.xlsx")
    assert wrong.startswith("'new.xlsx' must end in one of '.csv', ")


def test_several_columns_in_one_option(folder, capsys):
    on = ["people.csv", "--n-components", "2"]
    assert refused(capsys, "fit", *on, "--sensitive", "sex,race") == (
        "The table has no column 'sex,race': repeat the option for each of 'sex', 'race'."
    )
    carried = ["--carry", "a,b", "--output", "r.csv"]
    said = refused(capsys, "fit", *on, "--sensitive", "sex", *carried)
    assert said.endswith("repeat the option for each of 'a', 'b'.")
    assert "repeat the option" not in refused(capsys, "fit", *on, "--sensitive", "sex,age")


def test_options_and_commands_that_are_mistyped(capsys):
    assert refused(capsys, "fti") == "No such command 'fti'. Did you mean 'fit'? Try --help."
    assert refused(capsys, "fit", "--sensitiv", "sex") == (
        "No such option: --sensitiv; did you mean --sensitive? Try --help."
    )


def test_a_full_disk_names_the_file_and_what_was_written(folder, capsys, monkeypatch):
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
    said = refused(capsys, "fit", "people.csv", *FIT, *files, code=1)
    written, end = said.removeprefix("cannot write 'm.fairpca': the disk is full after ").split(
        " ", 1
    )
    assert int(written.replace(",", "")) > 1000
    assert end == "bytes, which are removed again; before that, 'r.csv' was written."
    assert sorted(os.listdir()) == sorted([*before, "r.csv"])


def test_other_refusals_of_the_system_are_one_sentence(folder, capsys, monkeypatch):
    def fail(error):
        def failing(*_, **__):
            raise error

        return failing

    for error, said in [
        (
            PermissionError(errno.EACCES, "Permission denied", "a.csv"),
            "use 'a.csv': you have no pe",
        ),
        (
            OSError(errno.EIO, "Input/output error", "a.csv"),
            "use 'a.csv': the disk does not answer",
        ),
        (OSError(errno.ENOSPC, "No space left on device"), "go on: the disk is full."),
        (OSError(errno.ENXIO, "No such device or address", "x"), "use 'x': no such device or addr"),
    ]:
        monkeypatch.setattr("fairpca.cli._fitting.fit_fair", fail(error))
        shown = refused(capsys, "fit", "people.csv", *FIT, code=1)
        assert shown.startswith(f"cannot {said}")
        assert "Errno" not in shown
