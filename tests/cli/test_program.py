"""The program in a process of its own: exit codes, streams and signals."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from importlib.abc import MetaPathFinder

import numpy as np
import pandas as pd
import pytest
from pyarrow import feather

from fairpca import FairPCA, audit
from fairpca.cli import main
from fairpca.model_file import load_model
from said import complaint, piped

from people import FIT, people, prepared_by_hand

SCRIPT = shutil.which("fairpca", path=sysconfig.get_path("scripts"))


def said_by(done):
    """The error stream without signs of life."""
    lines = done.stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not re.search(r" (…|took \d+ s\.)$", line))


def program(*arguments, command=(sys.executable, "-m", "fairpca"), **options):
    return subprocess.run(
        [*command, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        **options,
    )


@pytest.mark.contract
def test_fit_transform_and_audit_are_what_python_gives(folder, capsys):
    """Each step is started in another way, from and to another format; the last ones in here."""
    frame, new = people(), people(seed=1)
    script = [SCRIPT] if SCRIPT else [sys.executable, "-m", "fairpca"]
    done = program("fit", "people.csv", *FIT, "--model", "m.fairpca", "--output", "r.parquet")
    assert (done.returncode, said_by(done)) == (0, "")
    rows, new_rows = prepared_by_hand(frame, new)
    fair = FairPCA(2).fit(rows, sensitive_features=frame["sex"])
    assert f"\n{piped(fair.group_table_)}\n" in done.stdout
    assert fair.certificate_.sentences()[0] in done.stdout
    np.testing.assert_allclose(pd.read_parquet("r.parquet"), fair.transform(rows), atol=1e-12)
    done = program(
        *["transform", "new.csv", "--model", "m.fairpca", "--output", "new.feather"],
        *["--carry", "job", "--json"],
        command=script,
    )
    assert (done.returncode, said_by(done)) == (0, "")
    assert json.loads(done.stdout)["rows"] == 120
    written = feather.read_feather("new.feather")
    assert written.columns.tolist() == ["job", "fairpca0", "fairpca1"]
    assert written["job"].tolist() == new["job"].tolist()
    expected = fair.transform(new_rows)
    np.testing.assert_allclose(written[["fairpca0", "fairpca1"]], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(load_model("m.fairpca").transform(new), expected, atol=1e-12)
    assert main(["audit", "people.arrow", "--model", "m.fairpca", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    table = audit(fair, rows, sensitive_features=frame["sex"])
    losses = [group["audited_loss"] for group in result["model"]["groups"]]
    np.testing.assert_allclose(losses, table.loss, rtol=1e-10)
    assert "certificate" not in result  # nothing is fitted
    np.testing.assert_allclose(result["model"]["total_loss"], fair.solution_.total_loss, rtol=1e-10)
    wrong = ["fit", "people.csv", "--sensitive", "gender", "--n-components", "2"]
    complaint(capsys, wrong, "no column", "'gender'")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_ctrl_c_while_writing_leaves_nothing_behind(folder):
    code = (
        "import sys, time\n"
        "from fairpca.cli import main\n"
        "from fairpca.tables import writing\n"
        "def slow(suffix, file, schema):\n"
        "    file.write(b'half')\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(60)\n"
        "writing._writer = slow\n"
        f"sys.exit(main(['fit', 'people.csv', *{FIT!r}, '--output', 'r.csv']))\n"
    )
    before = sorted(os.listdir())
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "writing\n"
    assert len(os.listdir()) == len(before) + 1
    running.send_signal(signal.SIGINT)
    out, said = running.communicate(timeout=30)
    assert (running.returncode, out) == (130, "")
    assert said.strip() == "fairpca: interrupted; nothing was left half-written."
    assert sorted(os.listdir()) == before


def test_without_the_extra_one_line_names_it(monkeypatch, capsys):
    class Missing(MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name in ("typer", "pandas", "pyarrow"):
                raise ImportError(name)

    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    for name in ("typer", "pandas", "pyarrow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    complaint(capsys, [], "typer, pandas, pyarrow", "fairpca[cli]")


NUMERICAL = ("numpy", "scipy", "sklearn", "pandas", "pyarrow")


def test_help_version_and_completion_load_no_numerical_library():
    """One process for all; and what the words of the help are words of is the library's own."""
    code = (
        "import os, sys\n"
        "from fairpca.cli import main\n"
        "commands = ('audit', 'compare', 'fit', 'front', 'report', 'transform')\n"
        "for asked in (['--version'], ['--help'], *([name, '--help'] for name in commands)):\n"
        "    assert main(asked) == 0\n"
        "assert main(['fit', '--bogus']) == 2\n"
        "os.environ |= {'_FAIRPCA_COMPLETE': 'complete_bash'}\n"
        "os.environ |= {'COMP_WORDS': 'fairpca fit --crit', 'COMP_CWORD': '2'}\n"
        "assert main([]) == 0\n"
        f"loaded = {{*sys.modules}} & {{*{NUMERICAL!r}, 'rich'}}\n"
        "assert not loaded, loaded\n"
        "import fairpca.inspection.audit, fairpca\n"
        "assert callable(fairpca.audit), 'the function, also where the module was loaded first'\n"
        "from fairpca.choices import CRITERIA, MEASURES\n"
        "assert CRITERIA == tuple(fairpca.criteria.CRITERIA)\n"
        "assert MEASURES == tuple(fairpca.measures.MEASURES)\n"
    )
    done = program(command=(sys.executable, "-c", code))
    assert done.returncode == 0, done.stderr
    assert "fairpca 0." in done.stdout
    assert done.stdout.endswith("--criterion\n")
    assert done.stderr == "fairpca: No such option: --bogus; did you mean --bound? Try --help.\n"


def test_help_fits_the_screen_and_breaks_no_word(capsys, monkeypatch):
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for command in ("audit", "compare", "fit", "front", "report", "transform"):
            assert main([command, "--help"]) == 0
            lines = capsys.readouterr().out.splitlines()
            assert max(map(len, lines)) <= columns
            assert not [line for line in lines if line.endswith("-")]
            assert (max(map(len, lines)) > 80) == (columns > 80)


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_options_and_choices(folder, tmp_path):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "fairpca"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairpca "$@"\n')
    script.chmod(0o755)
    typed = {
        "fairpca f": "fit front",
        "fairpca fit --crit": "--criterion",
        "fairpca fit people.csv --criterion ": "soft minmax equal balanced",
        "fairpca audit people.csv --baseline t": "training",
        "fairpca fit --standardize n": "numbers none",
        "fairpca front people.csv --criterion ": "minmax equal",
        "fairpca front --measure share": "share_lost share_kept",
        "fairpca fit peo": "",  # which leaves files to bash
    }
    code = (
        'eval "$(fairpca --show-completion)"\n'
        "complete -p fairpca\n"
        "while IFS= read -r line; do\n"
        "    IFS=' ' read -ra COMP_WORDS <<< \"$line\"\n"
        '    [[ $line == *" " ]] && COMP_WORDS+=("")\n'
        "    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()\n"
        '    _fairpca_completion fairpca; echo "${COMPREPLY[*]}"\n'
        "done\n"
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code],
        input="\n".join(typed) + "\n",
        env=os.environ | {"PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    how, *found = done.stdout.splitlines()
    assert "-o default" in how, done.stderr
    assert dict(zip(typed, found, strict=True)) == typed


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize("module", ["typer", "numpy", "sklearn.utils"])
def test_ctrl_c_while_the_program_starts_is_quiet(folder, module):
    """It comes in the midst of an import, also where Python can raise nothing."""
    code = (
        "import os, signal, sys, threading\n"
        "from importlib.abc import MetaPathFinder\n"
        "class Slow(MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "            threading.Event().wait(30)\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from fairpca.cli import main\n"
        f"sys.exit(main(['fit', 'people.csv', *{FIT!r}]))\n"
    )
    done = program(command=(sys.executable, "-c", code))
    # The second is how Python says that Ctrl-C ended it; a shell has 130 for both.
    assert done.returncode in (130, -signal.SIGINT)
    assert done.stdout == ""
    assert done.stderr in ("", "fairpca: interrupted; nothing was left half-written.\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_result_that_cannot_be_written(folder, capsys, monkeypatch):
    for how in ([], ["--json"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            monkeypatch.setattr(sys, "stdout", full)
            assert main(["fit", "people.csv", *FIT, *how]) == 1
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == "fairpca: cannot write 'standard output': no space left on device."


def test_help_has_examples_and_the_version_is_printed(capsys):
    assert main([]) == 0
    assert "fairpca audit people.csv" in capsys.readouterr().out
    for command in ("audit", "compare", "fit", "front", "report", "transform"):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        assert "Examples:" in shown
        assert f"fairpca {command} " in shown.split("Examples:")[1]
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("fairpca ")


def test_it_can_run_outside_the_main_thread(folder):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


def _raise(failure):
    raise failure


def test_what_fails_inside_ends_with_code_1(folder, capsys, monkeypatch):
    def fail(*_, **__):
        raise KeyError("odd")

    monkeypatch.setattr(FairPCA, "fit_data", fail)
    assert main(["fit", "people.csv", *FIT]) == 1
    shown = capsys.readouterr().err
    assert shown == "fairpca: internal error, KeyError: 'odd' (--debug shows where)\n"
    assert main(["fit", "--debug", "people.csv", *FIT]) == 1
    assert "Traceback" in capsys.readouterr().err
    for failure, code, said in [
        (MemoryError(), 1, "not enough memory"),
        (ImportError("Semidefinite programs need cvxpy: install `fairpca[sdp]`."), 2, "[sdp]"),
    ]:
        monkeypatch.setattr(FairPCA, "fit_data", lambda *_, f=failure: _raise(f))
        assert main(["fit", "people.csv", *FIT]) == code
        assert said in capsys.readouterr().err
