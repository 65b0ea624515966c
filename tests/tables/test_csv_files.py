"""CSV files: one set of rules for types, missing values and damage, whatever the batches."""

import pyarrow
import pytest
from pandas._libs.parsers import STR_NA_VALUES

from fairpca.sources import read_moments
from fairpca.tables import reading
from fairpca.tables.reading import Table

from people import batches_of, people, read_table
from texts import refused

pytestmark = pytest.mark.contract

HUGE = "99999999999999999999"
TOKENS = {
    "int64": [["1", "2", "3", "4"], ["1", "", "3", "4"], ["1", "2", "3", "NA"], [" 1", "2 ", "-0"]],
    "double": [
        ["1", "2", "3.5", "1e3"],
        ["1", "1e30", "2.5", "inf"],
        ["0.1", "0.30000000000000004", "1e-320", "2"],
        ["1", HUGE, "2", "3"],
        ["", "", "1", "0.5"],
    ],
    "bool": [["True", "False", "true", "FALSE"], ["True", "NA", "False", ""], ["", "", "True"]],
    "null": [["NA", "", "NULL", "nan"]],
    "string": [
        ["1", "2", "x", "4"],
        ["1", "2", "  ", "4"],
        ["True", "False", "1", "0"],
        ["1", "0", "True"],
        ["", "True", "2"],
        ["True", "False", "yes", "NA"],
        ["NA", "cook", "", "None"],
        ["cook", "7", "8", "9"],
        ["0x1F", "1", "1_000", "2"],
        [HUGE, "a", "1", "2"],
        ["2020-01-31", "2020-02-01", "12:30"],
        ["2020-01-31 12:00", "", "2020-02-01 12:00"],
        ['"1"', '"2"', '""', '"x"'],
        ['"a\nb"', '"a,b"', '"a""b"'],
    ],
}
CASES = [(kind, tokens) for kind, all_tokens in TOKENS.items() for tokens in all_tokens]


def write(path, *tokens, text="x,y\n"):
    path.write_text(text + "".join(f"{token},1\n" for token in tokens), "utf-8", newline="")
    return path


def columns(path, **options):
    return batches_of(Table(path, **options), ["y", "x"])


@pytest.mark.parametrize(("kind", "tokens"), CASES, ids=str)
@pytest.mark.parametrize("block", [24, 48])
def test_types_do_not_depend_on_the_batches(tmp_path, monkeypatch, kind, tokens, block):
    tokens = [*tokens, *[tokens[-1]] * 10]
    path = write(tmp_path / "t.csv", *tokens)
    (whole,), expected = columns(path)
    assert str(expected.schema.field("x").type) == kind
    # In text only an empty cell is missing.
    words = ["", *reading.MISSING_WORDS] if kind != "string" else ["", '""']
    assert whole.column("x").is_null().to_pylist() == [token in words for token in tokens]
    monkeypatch.setattr(reading, "BLOCK", block)
    parts, found = columns(path, in_memory=False)
    assert len(parts) > 1
    assert found.equals(expected)


@pytest.mark.parametrize("tokens", [tokens for _, tokens in CASES], ids=str)
def test_columns_can_be_text_whatever_they_look_like(tmp_path, tokens):
    _, found = columns(write(tmp_path / "t.csv", *tokens), text=["x", "z"])
    assert str(found.schema.field("x").type) == "string"
    if '"' not in "".join(tokens):
        assert found["x"].to_pylist() == [token or None for token in tokens]


@pytest.mark.parametrize(("last", "kind"), [("0.5", "double"), ("many", "string")])
def test_a_column_that_changes_its_type_late(tmp_path, monkeypatch, last, kind):
    """In a file of several blocks, behind the first 100,000 rows."""
    monkeypatch.setattr(reading, "BLOCK", 2**17)
    path = write(tmp_path / "t.csv", *["7"] * 100_000, last, "8")
    for in_memory in (True, False):
        batches, found = columns(path, in_memory=in_memory)
        assert (len(batches) == 1) == in_memory
        assert str(found.schema.field("x").type) == kind
        assert [str(value) for value in found["x"].to_pylist()[-2:]] == [
            last,
            "8.0" if kind == "double" else "8",
        ]
    if kind == "double":
        assert read_moments(path).count.tolist() == [100_002]
    else:
        with refused(ValueError, "t.csv'", "After row", "'x'", "type"):
            read_moments(path)


def test_many_columns_that_change_their_types_in_one_block(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "BLOCK", 200)
    names = [f"c{j}" for j in range(20)]
    lines = [",".join(names), *[",".join(["1"] * 20)] * 30, ",".join(["a"] * 10 + ["0.5"] * 10)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    table = Table(tmp_path / "t.csv", in_memory=False)
    with pytest.raises(reading.OtherTypeError):
        [*table.batches(names)]
    assert sum(len(batch) for batch in table.batches(names)) == 31


def test_line_ends_quotes_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffname,"a ""b""",x\r\n"é\r\nü","1,5",2\r\n\r\n,"",3\r\n'.encode())
    frame = read_table(path)
    assert frame.columns.tolist() == ["name", 'a "b"', "x"]
    assert frame["name"].fillna("-").tolist() == ["é\r\nü", "-"]
    assert frame['a "b"'].fillna("-").tolist() == ["1,5", "-"]
    assert frame["x"].tolist() == [2, 3]


def test_words_for_missing_are_words_in_text_and_missing_in_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("job,code,n\nNone,01,1\nNA,02,NA\ncook,03,3\n")
    frame = read_table(path, ["code"])
    assert frame["job"].tolist() == ["None", "NA", "cook"]
    assert frame["code"].tolist() == ["01", "02", "03"]
    assert frame["n"].isna().tolist() == [False, True, False]
    path.write_text('\ufeffjob\ncook\n""\nNA\n', "utf-8")
    assert read_table(path)["job"].isna().tolist() == [False, True, False]


def test_the_words_for_missing_numbers_are_those_of_pandas():
    assert set(reading.MISSING_WORDS) == set(STR_NA_VALUES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\n\n", "empty lines"),
        (b"x,y\n", "no rows"),
        (b"x,x\n1,2\n", "same name: 'x'"),
        (b"x,y\n1\n", "line 2 1 cell"),
        (b"x,y\n1,2,3\n", "line 2 3 cells"),
        ("x,y\né,1\n".encode("latin-1"), "UTF-8"),
        ("é,y\n1,1\n".encode("latin-1"), "UTF-8"),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, message):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    for in_memory in (True, False):
        with refused(ValueError, *message.split()) as caught:
            columns(path, in_memory=in_memory)
        assert "t.csv'" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_arrow_streams_and_indexes_can_be_read(tmp_path, monkeypatch):
    frame = people().set_axis([f"row {i}" for i in range(120)]).set_index("sex", append=True)
    table = pyarrow.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    with pyarrow.ipc.new_stream(str(tmp_path / "stream.arrow"), table.schema) as writer:
        writer.write_table(table)
    monkeypatch.setattr(reading, "_MOST_ROWS", 50)
    for in_memory in (True, False):
        read = read_table(tmp_path / "stream.arrow", in_memory=in_memory)
        assert sorted(read.columns) == sorted(people().columns)
        assert read["sex"].tolist() == people()["sex"].tolist()
