"""GroupTable: the printed table, data frames, and HTML that no label can break."""

import builtins
from html.parser import HTMLParser

import numpy as np
import pytest

from fairpca import GroupTable

HOSTILE = [
    "<script>alert('x')</script>",
    '"><img src=x onerror="alert(1)">',
    "a & b &amp; c",
    "x" * 10_000,
    "first\nsecond\r\n\tthird",
    "</td></tr></table>",
    "",
]


def table(labels=("a", "b"), own=(1.0, 2.0), pca=(1.5, 2.25), loss=(1.25, 2.5), count=(1234, 5)):
    return GroupTable(
        "fair", tuple(labels), np.array(count), np.array(own), np.array(pca), np.array(loss)
    )


def table_of(labels):
    k = len(labels)
    return table(labels, np.ones(k), np.full(k, 2.0), np.full(k, 1.5), np.arange(1, k + 1))


class Cells(HTMLParser):
    """The cells of a table as a browser would show them, and every tag met."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"scope", "style"}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.rows[-1][-1] += data


def test_disparities_are_losses_beyond_the_own_one():
    np.testing.assert_array_equal(table().disparity, [0.25, 0.5])
    np.testing.assert_array_equal(table().pca_disparity, [0.5, 0.25])


def test_printed_table():
    assert str(table()).splitlines() == [
        "group                rows  own PCA loss  PCA loss  fair loss  PCA disparity"
        "  fair disparity",
        "-" * 91,
        "a                   1,234        1.0000    1.5000     1.2500         0.5000"
        "          0.2500",
        "b                       5        2.0000    2.2500     2.5000         0.2500"
        "          0.5000",
        "-" * 91,
        "largest difference                                                   0.2500"
        "          0.2500",
    ]


@pytest.mark.parametrize(
    "labels",
    [
        ("a", "b"),
        (1, 20),
        (("Female", "Black"), ("Male", "White")),
        ("x" * 39, "x" * 41),
        ("é", "日本"),
        tuple(HOSTILE),
    ],
)
def test_lines_are_aligned(labels):
    lines = str(table_of(labels)).splitlines()
    assert len(lines) == len(labels) + 4
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) < 150


def test_intersections_are_joined():
    assert "Female × Black" in str(table_of([("Female", "Black"), ("Male", "White")]))  # noqa: RUF001


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e4, 1e8, 1e16])
def test_large_and_small_numbers_keep_their_leading_figures(scale):
    shown = table(
        own=np.array([1.0, 2.0]) * scale,
        pca=np.array([1.5, 2.25]) * scale,
        loss=np.array([1.25, 2.5]) * scale,
    )
    first = str(shown).splitlines()[2].split()
    numbers = [float(cell.replace(",", "")) for cell in first[2:]]
    np.testing.assert_allclose(numbers, np.array([1.0, 1.5, 1.25, 0.5, 0.25]) * scale, rtol=1e-2)


def test_values_smaller_than_sixteen_decimals_are_not_all_shown_as_zero():
    # What FairPCA gives for columns of size 1e-9: the table must still say who pays.
    scale = 1e-18
    shown = table(
        own=np.array([1.0, 2.0]) * scale,
        pca=np.array([1.5, 2.25]) * scale,
        loss=np.array([1.25, 2.5]) * scale,
    )
    numbers = [float(cell) for cell in str(shown).splitlines()[2].split()[2:]]
    np.testing.assert_allclose(numbers, np.array([1.0, 1.5, 1.25, 0.5, 0.25]) * scale, rtol=1e-2)


def test_rounding_is_not_shown_as_minus_zero():
    assert "-0.0000" not in str(table(loss=(1.0 - 1e-16, 2.0 - 4e-16), pca=(1.0, 2.0)))


def test_nothing_lost_at_all():
    lines = str(table(own=(0.0, 0.0), pca=(0.0, 0.0), loss=(0.0, 0.0))).splitlines()
    assert lines[2].split() == ["a", "1,234"] + ["0.0000"] * 5


def test_dictionary_and_frame_hold_all_digits():
    third = 1 / 3
    shown = table(labels=(("f", 1), "b"), loss=(1 + third, 2.5))
    columns = shown.to_dict()
    assert list(columns) == [
        "group",
        "rows",
        "own PCA loss",
        "PCA loss",
        "fair loss",
        "PCA disparity",
        "fair disparity",
    ]
    assert columns["group"] == ["f × 1", "b"]  # noqa: RUF001
    assert columns["fair loss"] == [1 + third, 2.5]
    frame = shown.to_frame()
    assert frame.index.name == "group"
    assert frame.index.tolist() == [("f", 1), "b"]
    for name in list(columns)[1:]:
        assert frame[name].tolist() == columns[name]
    np.testing.assert_array_equal(frame["fair disparity"], shown.disparity)
    np.testing.assert_array_equal(frame["PCA disparity"], shown.pca_disparity)


def test_frame_without_pandas_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(ImportError, match=r"fairpca\[frames\]"):
        table().to_frame()


def test_html_of_hostile_labels_is_harmless():
    shown = table_of(HOSTILE)
    text = shown._repr_html_()
    parsed = Cells(text)
    assert set(parsed.tags) == {"table", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert len(parsed.rows) == len(HOSTILE) + 2
    assert {len(row) for row in parsed.rows} == {7}
    firsts = [row[0] for row in parsed.rows[1:-1]]
    for label, cell in zip(HOSTILE, firsts, strict=True):
        one_line = " ".join(label.split())
        if len(one_line) <= 40:
            assert cell == one_line
        else:
            assert len(cell) == 40
            assert one_line.startswith(cell[:-1])
    assert len(text) < 10_000


def test_html_shows_what_is_printed():
    printed = str(table()).splitlines()
    cells = Cells(table()._repr_html_()).rows
    assert cells[1] == printed[2].split()
    assert cells[2] == printed[3].split()
