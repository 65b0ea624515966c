"""Messy tables as people have them, each with what becomes of it.

`CASES` has one entry for each: a function that makes the file, what is typed besides, and either
what becomes of its columns or, where it is refused, the options that are offered: "" if there are
none. The sentences of refusals are in texts.txt.
"""

import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet

ROWS = 60
TYPED = ["--sensitive", "sex", "--n-components", "1"]


def base(**more):
    """A tidy table: two columns of measurements, one of text and one that makes the groups."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "height": rng.normal(170, 9, ROWS).round(1),
            "age": rng.integers(18, 80, ROWS),
            "job": np.resize(["cook", "smith", "nurse"], ROWS),
            "sex": np.resize(["f", "m"], ROWS),
        }
    )
    return frame.assign(**more)


def with_cells(column, *cells, start=20):
    """The tidy table with other cells in a column, from a row on; the first row is in line 2."""
    frame = base().astype({column: str})
    frame.loc[start : start + len(cells) - 1, column] = cells
    return frame


def text(frame, encoding="utf-8", **options):
    return frame.to_csv(index=False, **options).encode(encoding)


def lines(*rows, head="height,age,sex"):
    return "\n".join([head, *rows, ""]).encode()


def tidy_lines(n=20):
    return [f"{150 + i % 7}.5,{20 + i % 9},{'fm'[i % 2]}" for i in range(n)]


def parquet(table):
    target = io.BytesIO()
    if isinstance(table, pd.DataFrame):
        table = pyarrow.Table.from_pandas(table, preserve_index=False)
    pyarrow.parquet.write_table(table, target)
    return target.getvalue()


def days(n=ROWS):
    return [date(2020, 1, 1) + timedelta(days=37 * i % 1000) for i in range(n)]


@dataclass(frozen=True)
class Case:
    """A messy table, and either what it is read as or what a refusal offers to add."""

    name: str
    make: Callable[[], bytes]
    typed: tuple[str, ...]
    file: str
    expected: str | None
    add: str | None


NAMES = [f"person {i}" for i in range(ROWS)]
COMMAS = base(height=[f"{v:.3f}".replace(".", ",") for v in np.linspace(5, 6, ROWS)])
CASES = []
TIDY = "height number; age number; job onehot 3; sex sensitive"


def case(name, make, *typed, file="t.csv", expected=None, add=None):
    CASES.append(Case(name, make, typed, file, expected, add))


# Numbers that are not quite
case(
    "tidy",
    lambda: text(base()),
    expected=TIDY,
)
case(
    "letter O for a zero",
    lambda: text(with_cells("age", "4O")),
    add="--missing-values 4O --impute",
)
case(
    "letter O, three hundred rows",
    lambda: text(pd.concat([base()] * 5).assign(income=[*(20000 + 101 * np.arange(299)), "12O"])),
    add="--missing-values 12O --impute",
)
case(
    "several slips",
    lambda: text(with_cells("age", "4O", "l7", "?", "none", "5 5")),
    add="--drop age",
)
case(
    "a slip among missing values",
    lambda: text(with_cells("age", *["NA"] * 12, "4O", "n/a", "inf")),
    add="--missing-values 4O --impute",
)
case(
    "one word for missing",
    lambda: text(with_cells("age", "?", "?", "?")),
    add="--missing-values '?' --impute",
)
case(
    "that word, said to be missing",
    lambda: text(with_cells("age", "?", "?", "?")),
    "--missing-values",
    "?",
    "--drop-missing",
    expected=("height number; age number; job onehot 3; sex sensitive; 3 rows left out"),
)
case(
    "a dash for missing",
    lambda: text(with_cells("height", "-")),
    add="--missing-values - --impute",
)
case(
    "a third of the ages unknown",
    lambda: text(with_cells("age", *["unknown"] * 20)),
    add="--missing-values unknown --impute",
)
case(
    "a unit in one cell",
    lambda: text(with_cells("height", "171 cm")),
    add="--missing-values '171 cm' --impute",
)
case(
    "decimal commas",
    lambda: text(COMMAS),
    add="--drop height",
)
case(
    "decimal commas, said",
    lambda: text(COMMAS),
    "--decimal",
    ",",
    expected=TIDY,
)
case(
    "decimal commas that cannot be thousands",
    lambda: text(base(height=[f"{v:.1f}".replace(".", ",") for v in base()["height"]])),
    add="--decimal ,",
)
case(
    "decimal comma in one cell",
    lambda: text(with_cells("height", "171,5")),
    add="--drop height",
)
case(
    "thousands",
    lambda: text(base(income=[f"{v:,}" for v in range(1_000_000, 7_000_000, 100_000)])),
    add="--drop income",
)
case(
    "thousands with points, decimal commas",
    lambda: text(base(income=[f"{v}.250,5" for v in range(10, 70)]), sep=";", decimal=","),
    "--sep",
    ";",
    "--decimal",
    ",",
    add="--drop income",
)
case(
    "decimal points where commas are said",
    lambda: text(base(), sep=";"),
    "--sep",
    ";",
    "--decimal",
    ",",
    add="--decimal .",
)
case(
    "thousands and decimal points",
    lambda: text(base(income=[f"{v},250.5" for v in range(10, 70)])),
    add="--drop income",
)
case(
    "thousands in one cell",
    lambda: text(with_cells("height", "1,710")),
    add="--drop height",
)
case(
    "thousands with apostrophes",
    lambda: text(base(income=[f"{v}'250" for v in range(10, 70)])),
    add="--drop income",
)
case(
    "percentages with a sign",
    lambda: text(base(share=[f"{v}%" for v in range(60)])),
    add="--drop share",
)
case(
    "dollars",
    lambda: text(base(price=[f"${v}.50" for v in range(60)])),
    add="--drop price",
)
case(
    "percentages as numbers",
    lambda: text(base(share=np.arange(60) % 50 / 2)),
    expected="height number; age number; job onehot 3; share number; sex sensitive",
)
case(
    "numbers as text in Parquet",
    lambda: parquet(base(code=[f"{v}.5" for v in range(60)])),
    file="t.parquet",
    add="--drop code",
)
case(
    "numbers in quotes",
    lambda: text(base(), quoting=1),
    expected=TIDY,
)
case(
    "spaces around numbers",
    lambda: text(base(age=[f" {v} " for v in base()["age"]])),
    expected=TIDY,
)
case(
    "grades with a letter",
    lambda: text(base(grade=np.resize(["K", *map(str, range(1, 13))], 60))),
    add="--missing-values K --impute",
)
case(
    "grades with a letter, as text",
    lambda: text(base(grade=np.resize(["K", *map(str, range(1, 13))], 60))),
    "--as-text",
    "grade",
    "--min-rows",
    "1",
    expected=("height number; age number; job onehot 3; grade onehot 13; sex sensitive"),
)
case(
    "codes with a word",
    lambda: text(base(code=np.resize(["1", "2", "3", "other"], 60))),
    expected="height number; age number; job onehot 3; code onehot 4; sex sensitive",
)
case(
    "zip codes",
    lambda: text(base(zip=(np.arange(60) * 7919) % 90000 + 10000)),
    expected="height number; age number; job onehot 3; zip number; sex sensitive",
)
case(
    "numbers too large for 64 bits",
    lambda: text(base(big=[10**20 + i for i in range(60)])),
    expected=("height number; age number; job onehot 3; big number (constant); sex sensitive"),
)
case(
    "1e200",
    lambda: text(base(age=[1e200, -1e200] * 30)),
    add="--drop age",
)
case(
    "infinite",
    lambda: text(with_cells("height", "inf")),
    add="--impute",
)
case(
    "hexadecimal",
    lambda: text(base(code=np.resize(["0x1F", "0x2A"], 60))),
    expected="height number; age number; job onehot 3; code number; sex sensitive",
)

# What is missing
case(
    "empty cells",
    lambda: text(with_cells("age", "", "")),
    add="--impute",
)
case(
    "empty cells, filled in",
    lambda: text(with_cells("age", "", "")),
    "--impute",
    expected=(
        "height number; age number (2 missing values became 51.3621); job onehot 3; sex sensitive"
    ),
)
case(
    "empty text, most frequent",
    lambda: text(with_cells("job", "", "")),
    "--impute",
    expected=(
        "height number; age number; job onehot 3 (2 missing values became 'smith'); sex sensitive"
    ),
)
case(
    "empty cells, rows left out",
    lambda: text(with_cells("age", "", "")),
    "--drop-missing",
    expected=("height number; age number; job onehot 3; sex sensitive; 2 rows left out"),
)
case(
    "an empty column",
    lambda: text(base(note=None)),
    add="--drop note",
)
case(
    "a value missing in every row",
    lambda: text(base(height=[1.5, None] * 30, age=[None, 2.0] * 30)),
    "--drop-missing",
    add="",
)
case(
    "missing groups",
    lambda: text(with_cells("sex", "", "")),
    add="--missing-labels drop",
)
case(
    "two remedies at once",
    lambda: text(base()),
    "--impute",
    "--drop-missing",
    add="",
)

# Keys, dates and free text
case(
    "numbers of rows",
    lambda: text(base(id=range(1, 61))),
    add="--drop id",
)
case(
    "numbers of rows, shuffled",
    lambda: text(base(key=np.random.default_rng(0).permutation(60))),
    add="--drop key",
)
case(
    "numbers of rows, some rows gone",
    lambda: text(base(number=[3 * i // 2 for i in range(60)])),
    add="--drop number",
)
case(
    "numbers of customers",
    lambda: text(base(customer_id=(np.arange(60) * 7919) % 10**6)),
    add="--drop customer_id",
)
case(
    "numbers of regions",
    lambda: text(base(region_id=np.arange(60) % 5)),
    expected=("height number; age number; job onehot 3; region_id number; sex sensitive"),
)
case(
    "years, one each",
    lambda: text(base(year=range(1950, 2010))),
    add="--drop year",
)
case(
    "years, said to be measured",
    lambda: text(base(year=range(1950, 2010))),
    "--as-number",
    "year",
    expected="height number; age number; job onehot 3; year number; sex sensitive",
)
case(
    "an index without a name",
    lambda: base().to_csv().encode(),
    add="--drop 'Unnamed: 0'",
)
case(
    "names",
    lambda: text(base(name=NAMES)),
    add="--drop name",
)
case(
    "names, left out",
    lambda: text(base(name=NAMES)),
    "--drop",
    "name",
    expected="height number; age number; job onehot 3; sex sensitive; name left out",
)
case(
    "nearly unique names",
    lambda: text(base(name=["Ann", "Ann", *NAMES[2:]])),
    add="--drop name",
)
case(
    "ISO dates",
    lambda: text(base(born=days())),
    add="--drop born",
)
case(
    "German dates",
    lambda: text(base(born=[f"{d:%d.%m.%Y}" for d in days()])),
    add="--drop born",
)
case(
    "American dates and times",
    lambda: text(base(seen=[f"{d:%m/%d/%y} 10:30 PM" for d in days()])),
    add="--drop seen",
)
case(
    "written dates",
    lambda: text(base(born=[f"{d:%d %b %Y}" for d in days()])),
    add="--drop born",
)
case(
    "three dates, as categories",
    lambda: text(base(wave=np.resize(days(3), 60).astype(str))),
    "--as-text",
    "wave",
    expected="height number; age number; job onehot 3; wave onehot 3; sex sensitive",
)
case(
    "times in Parquet",
    lambda: parquet(base(seen=pd.to_datetime(days()).astype("datetime64[ms]"))),
    file="t.parquet",
    add="--drop seen",
)
case(
    "three times in Parquet, as categories",
    lambda: parquet(base(wave=pd.to_datetime(np.resize(days(3), 60)))),
    "--as-text",
    "wave",
    file="t.parquet",
    expected="height number; age number; job onehot 3; wave onehot 3; sex sensitive",
)
case(
    "numbers in Parquet, as categories",
    lambda: parquet(base(zip=np.resize([10115, 20095, 80331], 60))),
    "--as-text",
    "zip",
    file="t.parquet",
    expected="height number; age number; job onehot 3; zip onehot 3; sex sensitive",
)
case(
    "text in Parquet without any",
    lambda: parquet(base(note=pd.array([None] * 60, dtype="string"))),
    file="t.parquet",
    add="--drop note",
)
case(
    "shares as categories",
    lambda: text(base(share=np.resize(["10%", "20%", "50%"], 60))),
    "--as-text",
    "share",
    expected=("height number; age number; job onehot 3; share onehot 3; sex sensitive"),
)
case(
    "bands",
    lambda: text(base(band=np.resize(["18-24", "25-34", "<=50K", "1.5-2.5"], 60))),
    expected="height number; age number; job onehot 3; band onehot 4; sex sensitive",
)
case(
    "gzip, damaged",
    lambda: gzip.compress(text(base()))[:40] + b"x" * 60,
    file="t.csv.gz",
    add="",
)
case(
    "dates, of which some are missing",
    lambda: text(base(born=[*days(40), *["NA"] * 20])),
    add="--drop born",
)
case(
    "free text",
    lambda: text(base(note=[f"said {i % 40} times" for i in range(60)])),
    add="--drop note",
)
case(
    "rare categories",
    lambda: text(base(job=["poet", "king", *["cook", "smith"] * 29])),
    expected=(
        "height number; age number; job onehot 3 (2 rare categories as 'other (rare)'); sex "
        "sensitive"
    ),
)
case(
    "rare categories, kept",
    lambda: text(base(job=["poet", "king", *["cook", "smith"] * 29])),
    "--min-rows",
    "1",
    expected="height number; age number; job onehot 4; sex sensitive",
)
case(
    "a category with the pool's name",
    lambda: text(base(job=["poet", *["other (rare)"] * 29, *["cook"] * 30])),
    expected=(
        "height number; age number; job onehot 3 (1 rare category as 'other (rare)*'); sex "
        "sensitive"
    ),
)
case(
    "all categories rare",
    lambda: text(base(town=[f"town {i // 4}" for i in range(60)])),
    expected=(
        "height number; age number; job onehot 3; town onehot 1 (constant; 15 rare categories"
        " as 'other (rare)'); sex sensitive"
    ),
)
case(
    "constant columns",
    lambda: text(base(one=1, word="x")),
    expected=(
        "height number; age number; job onehot 3; one number (constant); word onehot 1 "
        "(constant); sex sensitive"
    ),
)
case(
    "truth values",
    lambda: text(base(member=np.arange(60) % 3 == 0)),
    expected="height number; age number; job onehot 3; member number; sex sensitive",
)
case(
    "yes and no",
    lambda: text(base(member=np.resize(["yes", "no"], 60))),
    expected=("height number; age number; job onehot 3; member onehot 2; sex sensitive"),
)
case(
    "lists in Parquet",
    lambda: parquet(base(parts=[[1, 2]] * 60)),
    file="t.parquet",
    add="--drop parts",
)
case(
    "a question mark among categories",
    lambda: text(with_cells("job", *["?"] * 6)),
    expected="height number; age number; job onehot 4; sex sensitive",
)
case(
    "a question mark among categories, missing",
    lambda: text(with_cells("job", *["?"] * 6)),
    "--missing-values",
    "?",
    add="--impute",
)
case(
    "blank cells",
    lambda: text(with_cells("age", "  ", "  ")),
    add="--missing-values '  ' --impute",
)
case(
    "blank cells, said to be missing",
    lambda: text(with_cells("age", "  ", "  ")),
    "--missing-values",
    "  ",
    "--impute",
    expected=(
        "height number; age number (2 missing values became 51.3621); job onehot 3; sex sensitive"
    ),
)

# Names of columns
case(
    "another case",
    lambda: text(base()),
    "--drop",
    "Age",
    add="",
)
case(
    "a slip in a name",
    lambda: text(base()),
    "--drop",
    "hieght",
    add="",
)
case(
    "two names in one option",
    lambda: text(base()),
    "--drop",
    "age,job",
    add="",
)
case(
    "an unknown name",
    lambda: text(base()),
    "--drop",
    "income",
    add="",
)
case(
    "the same name twice",
    lambda: lines("1,2,3,f", "2,3,4,m", head="a,a,b,sex"),
    add="--drop 'a (2)'",
)
case(
    "spaces around names",
    lambda: text(base().rename(columns={"age": " age", "sex": " sex "})),
    "--drop",
    "age",
    expected="height number; job onehot 3; age left out; sex sensitive",
)
case(
    "no names",
    lambda: text(base(job=1.5), header=False),
    add="",
)

# Files
case(
    "semicolons",
    lambda: text(base(), sep=";"),
    add="--sep ';'",
)
case(
    "semicolons, said",
    lambda: text(base(), sep=";"),
    "--sep",
    ";",
    expected=TIDY,
)
case(
    "semicolons and decimal commas",
    lambda: text(base(), sep=";", decimal=","),
    add="--sep ';' --decimal ,",
)
case(
    "semicolons and decimal commas, said",
    lambda: text(base(), sep=";", decimal=","),
    "--sep",
    ";",
    "--decimal",
    ",",
    expected=TIDY,
)
case(
    "a comma in the first of semicolons",
    lambda: text(base().rename(columns={"height": "height, cm"}), sep=";"),
    add="--sep ';'",
)
case(
    "tabs",
    lambda: text(base(), sep="\t"),
    add="--sep tab",
)
case(
    "tabs, said",
    lambda: text(base(), sep="\t"),
    "--sep",
    "tab",
    expected=TIDY,
)
case(
    "tabs by suffix",
    lambda: text(base(), sep="\t"),
    file="t.tsv",
    expected=TIDY,
)
case(
    "commas in a file for tabs",
    lambda: text(base()),
    file="t.tsv",
    add="--sep ,",
)
case(
    "vertical bars",
    lambda: text(base(), sep="|"),
    add="--sep '|'",
)
case(
    "latin-1",
    lambda: text(base(job=np.resize(["Köchin", "Näher"], 60)), "latin-1"),
    add="--encoding cp1252",
)
case(
    "latin-1, said",
    lambda: text(base(job=np.resize(["Köchin", "Näher"], 60)), "latin-1"),
    "--encoding",
    "latin-1",
    expected="height number; age number; job onehot 2; sex sensitive",
)
case(
    "latin-1 in a name",
    lambda: text(base(größe=1.5), "latin-1"),
    add="--encoding cp1252",
)
case(
    "cp1252, said",
    lambda: text(base(job=np.resize(["€", "“"], 60)), "cp1252"),
    "--encoding",
    "cp1252",
    expected="height number; age number; job onehot 2; sex sensitive",
)
case(
    "UTF-16",
    lambda: text(base(), "utf-16"),
    add="--encoding utf-16",
)
case(
    "UTF-16, said",
    lambda: text(base(), "utf-16"),
    "--encoding",
    "utf-16",
    expected=TIDY,
)
case(
    "UTF-16 without a mark",
    lambda: text(base(), "utf-16-le"),
    add="",
)
case(
    "UTF-8 with a mark",
    lambda: text(base(), "utf-8-sig"),
    expected=TIDY,
)
case(
    "an encoding that is not this",
    lambda: text(base(job="é"), "utf-8"),
    "--encoding",
    "ascii",
    add="",
)
case(
    "an encoding that is none",
    lambda: text(base()),
    "--encoding",
    "klingon",
    add="",
)
case(
    "gzip",
    lambda: gzip.compress(text(base())),
    file="t.csv.gz",
    expected=TIDY,
)
case(
    "gzip without a suffix",
    lambda: gzip.compress(text(base())),
    add="",
)
case(
    "a suffix without gzip",
    lambda: text(base()),
    file="t.csv.gz",
    add="",
)
case(
    "gzip, cut short",
    lambda: gzip.compress(text(base()))[:-40],
    file="t.csv.gz",
    add="",
)
case(
    "a spreadsheet",
    lambda: b"PK\x03\x04rest",
    file="t.xlsx",
    add="",
)
case(
    "a spreadsheet called CSV",
    lambda: b"PK\x03\x04rest",
    add="",
)
case(
    "a Parquet file called CSV",
    lambda: parquet(base()),
    add="",
)
case(
    "text called Parquet",
    lambda: text(base()),
    file="t.parquet",
    add="",
)
case(
    "rules for CSV on Parquet",
    lambda: parquet(base()),
    "--sep",
    ";",
    file="t.parquet",
    add="",
)
case(
    "an empty file",
    lambda: b"",
    add="",
)
case(
    "empty lines",
    lambda: b"\n\n\n",
    add="",
)
case(
    "names alone",
    lambda: b"height,age,sex\n",
    add="",
)
case(
    "a cell too many",
    lambda: lines(*tidy_lines(10), "171,5,33,m"),
    add="",
)
case(
    "a cell too few",
    lambda: lines(*tidy_lines(10), "171.5,33"),
    add="",
)
case(
    "a quote that is not closed",
    lambda: lines(*tidy_lines(10), '"171.5,33,m', *tidy_lines(5)),
    add="",
)
case(
    "a quote that is open to the end",
    lambda: text(base()).replace(b",m\n", b',"m\n', 1),
    add="",
)
case(
    "a title above the names",
    lambda: b"A survey\n" + text(base()),
    add="",
)
case(
    "a sum below the rows",
    lambda: text(base()) + b"Sum,3060\n",
    add="",
)
case(
    "empty lines between rows",
    lambda: lines(*tidy_lines(10), "", "17l,33,m", *tidy_lines(9)),
    add="--missing-values 17l --impute",
)
case(
    "line breaks in cells",
    lambda: lines(
        *(f'"a\nb",{line}' for line in tidy_lines()), '"a\nb",17l,33,m', head="note,height,age,sex"
    ),
    add="--missing-values 17l --impute",
)
case(
    "Windows and old line ends",
    lambda: text(base()).replace(b"\n", b"\r\n"),
    expected=TIDY,
)
case(
    "a separator of two characters",
    lambda: text(base()),
    "--sep",
    ";;",
    add="",
)

# What people type, and what programs write
case(
    "a line break in a name",
    lambda: text(base().rename(columns={"age": "age\nin years"})),
    "--drop",
    "age in years",
    expected="height number; job onehot 3; age in years left out; sex sensitive",
)
case(
    "two columns without a name",
    lambda: text(base()).replace(b"\n", b",,\n"),
    add="--drop 'Unnamed: 4' --drop 'Unnamed: 5'",
)
case(
    "a first line that says the separator",
    lambda: b"sep=;\n" + text(base(), sep=";"),
    add="",
)
case(
    "a cell of a spreadsheet's error",
    lambda: text(with_cells("age", "#DIV/0!")),
    add="--missing-values '#DIV/0!' --impute",
)
case(
    "that cell, said to be missing",
    lambda: text(with_cells("age", "#DIV/0!")),
    "--missing-values",
    "#DIV/0!",
    "--drop-missing",
    expected=("height number; age number; job onehot 3; sex sensitive; 1 rows left out"),
)
case(
    "a row of units",
    lambda: text(with_cells("height", "cm", start=0)),
    add="--missing-values cm --impute",
)
case(
    "weights with units",
    lambda: text(base(weight=[f"{50 + i} kg" for i in range(60)])),
    add="--drop weight",
)
case(
    "another minus",
    lambda: text(base(change=[f"\u2212{i}" for i in range(60)])),
    add="--drop change",
)
case(
    "numbers in parentheses",
    lambda: text(base(change=[f"({i})" for i in range(60)])),
    add="--drop change",
)
case(
    "durations",
    lambda: text(base(time=[f"PT{i}M" for i in range(60)])),
    add="--drop time",
)
case(
    "months",
    lambda: text(base(born=[f"{1950 + i}-{1 + i % 12:02}" for i in range(60)])),
    add="--drop born",
)
case(
    "ordinals are categories",
    lambda: text(base(place=np.resize(["1st", "2nd", "3rd"], 60))),
    expected=("height number; age number; job onehot 3; place onehot 3; sex sensitive"),
)
case(
    "limits of detection",
    lambda: text(base(level=[f"<{i}" if i % 2 else f"{i}" for i in range(60)])),
    add="--drop level",
)
case(
    "spaces that cannot be seen",
    lambda: text(with_cells("age", "41\u00a0")),
    add="--drop age",
)
case(
    "zip codes with zeros in front",
    lambda: text(base(zip=[f"{i * 7919 % 90000:05}" for i in range(60)])),
    add="--drop zip",
)
case(
    "zip codes with zeros in front, a few",
    lambda: text(base(zip=np.resize(["00501", "02139", "10001"], 60))),
    "--as-text",
    "zip",
    expected="height number; age number; job onehot 3; zip onehot 3; sex sensitive",
)
case(
    "zeros in front of what is measured",
    lambda: text(base(dose=[f"{i * 7 % 60:03}" for i in range(60)])),
    "--as-number",
    "dose",
    expected="height number; age number; job onehot 3; dose number; sex sensitive",
)
case(
    "zeros in front of labels",
    lambda: text(base(sex=["01", "02"] * 30)),
    expected=TIDY,
)
case(
    "phone numbers",
    lambda: text(base(phone=[5551230000 + 7919 * i % 60000 for i in range(60)])),
    expected=(
        "height number; age number; job onehot 3; phone number (all have 10 digits, as "
        "codes, telephone numbers and dates do (--drop phone leaves them out)); sex "
        "sensitive"
    ),
)
case(
    "dates as numbers",
    lambda: text(base(born=[19500101 + 10000 * (i * 7 % 50) for i in range(60)])),
    expected=(
        "height number; age number; job onehot 3; born number (all have 8 digits, as codes,"
        " telephone numbers and dates do (--drop born leaves them out)); sex sensitive"
    ),
)
case(
    "a text said to be a number",
    lambda: text(base()),
    "--as-number",
    "job",
    add="--drop job",
)
case(
    "missing values of R in text",
    lambda: text(base(job=np.resize(["cook", "smith", "NA"], 60))),
    expected=(
        "height number; age number; job onehot 3 ('NA' is a category, not a missing value "
        "(in CSV files, --missing-values NA makes it one)); sex sensitive"
    ),
)
case(
    "missing values of R in groups",
    lambda: text(base(sex=np.resize(["f", "m", "NA"], 60))),
    expected=(
        "height number; age number; job onehot 3; sex sensitive ('NA' is a group, not a "
        "missing value (in CSV files, --missing-values NA makes it one))"
    ),
)
case(
    "categories that differ in case and spaces",
    lambda: text(base(job=np.resize(["cook", "Cook", "smith", "smith ", "nurse"], 60))),
    expected=(
        "height number; age number; job onehot 5 ('Cook' and 'cook', 'smith' and 'smith ' "
        "differ only in case or spaces); sex sensitive"
    ),
)
case(
    "groups that differ in case and spaces",
    lambda: text(base(sex=np.resize(["f", "m", "F", "m "], 60))),
    expected=(
        "height number; age number; job onehot 3; sex sensitive ('F' and 'f', 'm' and 'm ' "
        "differ only in case or spaces)"
    ),
)
case(
    "spaces around names in a Parquet file",
    lambda: parquet(base().rename(columns={"sex": " sex "})),
    file="t.parquet",
    add="",
)
