"""GroupTable: the printed table, data frames, and HTML that no label can break."""

import builtins
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.cells import cell_len

from fairpca import FairPCA, GroupMoments, GroupTable, Problem
from fairpca.text import laid_out

from hostile import NAMES
from texts import numbers_in, recorded, refused

HOSTILE = [
    "<script>alert('x')</script>",
    '"><img src=x onerror="alert(1)">',
    "a & b &amp; c",
    "x" * 10_000,
    "first\nsecond\r\n\tthird",
    "</td></tr></table>",
    "",
]


def table(
    labels=("a", "b"),
    own=(1.0, 2.0),
    pca=(1.5, 2.25),
    loss=(1.25, 2.5),
    count=(1234, 5),
    variance=None,
    **known,
):
    variance = np.full(len(labels), 5.0) if variance is None else np.array(variance)
    numbers = (np.array(part) for part in (count, own, pca, loss))
    return GroupTable("fair", tuple(labels), *numbers, variance, **known)


def table_of(labels):
    k = len(labels)
    return table(labels, np.ones(k), np.full(k, 2.0), np.full(k, 1.5), np.arange(1, k + 1))


class Cells(HTMLParser):
    """The cells of a table as a browser would show them, and every tag met."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.said = [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert {name for name, _ in attrs} <= {"scope", "style"}
        self.inside = tag
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.inside == "p":
            self.said += data
        else:
            self.rows[-1][-1] += data


def test_disparities_are_losses_beyond_the_own_one():
    np.testing.assert_array_equal(table().disparity, [0.25, 0.5])
    np.testing.assert_array_equal(table().pca_disparity, [0.5, 0.25])


def test_printed_table():
    assert str(table()).splitlines() == [
        "              % lost  % lost   % lost",
        "group   rows     PCA    fair  own PCA",
        "-" * 37,
        "a      1,234    30.0    25.0     20.0",
        "b          5    45.0    50.0     40.0",
        "-" * 37,
        *laid_out([table().sentences()]).splitlines(),
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
        tuple(NAMES),
    ],
)
@pytest.mark.parametrize("width", [80, 120])
def test_lines_are_aligned_and_fit(labels, width):
    text = laid_out(table_of(labels).text_parts(), width)
    above, _ = text.split("Every group is better off than with ordinary PCA.")
    parts = [part.splitlines() for part in above.rstrip().split("\n\n")]
    assert len(parts) == 1 or width == 80
    for lines in parts:
        rule = next(line for line in lines if set(line) == {"-"})
        rows = lines[lines.index(rule) + 1 :][: len(labels)]
        # rich counts cells by a table of its own.
        assert {cell_len(line) for line in rows} == {len(rule)}
    assert max(map(cell_len, text.splitlines())) <= width


def test_intersections_are_joined():
    assert "Female × Black" in str(table_of([("Female", "Black"), ("Male", "White")]))  # noqa: RUF001


def test_names_that_differ_at_their_ends_do_not_look_alike():
    first, second = "x" * 60 + " north", "x" * 60 + " south"
    shown = table([first, second])
    assert [line.split()[0][-1] for line in str(shown).splitlines()[3:5]] == ["x", "x"]
    for name in ("north", "south"):
        assert f"x {name}  " in str(shown)
        assert f"x {name} loses" in shown.sentences()


def names_of_last(k):
    return [f"g{i}" for i in range(k - 40, k)]


def test_of_many_groups_those_with_the_largest_disparities_are_shown():
    k = 100
    own, pca = np.zeros(k), np.linspace(1, 2, k)
    shown = table([f"g{i:02d}" for i in range(k)], own, pca, pca[::-1] / 4, np.ones(k))
    assert [line.split()[0] for line in str(shown).splitlines()[3:43]] == names_of_last(k)
    said = str(shown).split("---\n")[-1].replace("\n", " ")
    recorded(said, "40 groups", "of 100", "to_dict() and to_frame()")
    assert "40 groups" not in str(table_of(range(40)))
    assert shown._repr_html_().count("<tr>") == k + 1


def test_the_worst_off_stand_out_unless_most_are():
    (printed, *_) = table(pca=(1.5, 2.25), loss=(1.25, 2.5)).text_parts()
    assert printed.worst == {(0, 2), (1, 3)}
    (printed, *_) = table_of([*"abc"]).text_parts()
    assert printed.worst == frozenset()


def test_rounding_is_not_shown_as_minus_zero():
    assert "-0.0" not in str(table(loss=(1.0 - 1e-16, 2.0 - 4e-16), pca=(1.0, 2.0)))


def test_nothing_lost_at_all():
    nothing = dict.fromkeys(("own", "pca", "loss", "variance"), (0.0, 0.0))
    lines = str(table(**nothing)).splitlines()
    assert lines[3].split() == ["a", "1,234", "0.0", "0.0", "0.0"]
    recorded(lines[-1], "Every group is as well off")


def test_dictionary_and_frame_hold_all_digits():
    third = 1 / 3
    shown = table(labels=(("f", 1), "b"), loss=(1 + third, 2.5))
    columns = shown.to_dict()
    assert list(columns) == [
        "group",
        "rows",
        "variance",
        "own PCA loss",
        "own PCA share lost",
        "PCA loss",
        "PCA share lost",
        "fair loss",
        "fair share lost",
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
    with refused(ImportError, "fairpca[frames]"):
        table().to_frame()


def test_html_of_hostile_labels_is_harmless():
    shown = table_of(HOSTILE)
    text = shown._repr_html_()
    parsed = Cells(text)
    assert set(parsed.tags) == {"table", "thead", "tbody", "tr", "th", "td", "p"}
    assert " ".join(parsed.said.split()) == " ".join(shown.sentences().split())
    assert len(parsed.rows) == len(HOSTILE) + 1
    assert {len(row) for row in parsed.rows} == {5}
    firsts = [row[0] for row in parsed.rows[1:]]
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
    assert cells[1] == printed[3].split()
    assert cells[2] == printed[4].split()
    assert Cells(table()._repr_html_()).said == table().sentences()


# --- One group, and all of them as a frame -------------------------------------


def test_length_labels_and_groups_by_label():
    shown = table(labels=("a", ("f", 1)))
    assert len(shown) == 2
    assert list(shown) == ["a", ("f", 1)]
    assert "a" in shown
    assert "c" not in shown
    assert shown["a"] == {
        "rows": 1234,
        "variance": 5.0,
        "own PCA loss": 1.0,
        "own PCA share lost": 0.2,
        "PCA loss": 1.5,
        "PCA share lost": 0.3,
        "fair loss": 1.25,
        "fair share lost": 0.25,
        "PCA disparity": 0.5,
        "fair disparity": 0.25,
    }
    assert shown["f", 1]["rows"] == 5
    with refused(KeyError, "'c'", "'a', ('f', 1)"):
        shown["c"]


def test_levels_of_the_frame_have_the_names_of_the_columns():
    assert table().to_frame().index.name == "group"
    assert table(group_names=("sex",)).to_frame().index.name == "sex"
    pairs = (("Female", "Black"), ("Male", "White"))
    named = table(labels=pairs, group_names=("sex", "race"))
    assert named.to_frame().index.names == ["sex", "race"]
    assert list(table(labels=pairs).to_frame().index.names) == [None, None]
    assert named.to_dict()["group"][0] == "sex=Female × race=Black"  # noqa: RUF001


def test_shares_are_those_of_the_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) * [3, 2, 1, 1]
    groups = np.repeat(["a", "b", "c"], 30)
    fair = FairPCA(2, criterion="minmax").fit(X, sensitive_features=groups)
    for i, label in enumerate("abc"):
        centred = (X - X.mean(axis=0))[groups == label]
        variance = np.square(centred).sum(axis=1).mean()
        assert fair.group_table_.variance[i] == pytest.approx(variance)
        lost = np.square(centred - centred @ fair.components_.T @ fair.components_).sum()
        share = fair.group_table_[label]["fair share lost"]
        assert share == pytest.approx(lost / np.square(centred).sum(), rel=1e-9)


# --- Compared with ordinary PCA ------------------------------------------------


def three(loss, **known):
    ones = np.ones(3)
    return table(
        labels=("a", "b", "c"), own=ones, pca=2 * ones, loss=loss, count=(1, 2, 3), **known
    )


def test_who_is_better_and_who_is_worse_off():
    shown = three([1.5, 2.0 + 4e-9, 3.0])
    assert shown.better_off == ("a",)
    assert shown.worse_off == ("c",)  # b has changed by less than rounding
    np.testing.assert_array_equal(shown.change, [-0.5, 0.0, 1.0])
    more = three([2.0, 2.0 + 6e-9, 2.0])
    assert more.worse_off == ("b",)
    assert more.change.min() == 0.0
    # Neither the loss nor its share is shown as if there were none.
    recorded(more.sentences(), "b loses 1.2e-07 %")


def test_sentences_say_who_and_than_what():
    said = recorded(three([1.5, 3.0, 2.5]).sentences(), "a loses 10.0 %", "b loses 20.0 %")
    assert numbers_in(said) == [1, 3, 2, 10.0, 20.0]
    best = recorded(three([1.5, 3.0, 2.5], pca_is_best=True).sentences(), "least total loss")
    assert best.startswith(said)
    everyone = three([2.5, 3.0, 2.5], pca_is_best=True).sentences()
    recorded(everyone, "Every group is worse off", "b loses 20.0 %")
    assert "least total loss" not in everyone
    recorded(three([1.5, 1.5, 2.0]).sentences(), "2 of 3 groups", "none is worse off")
    recorded(three([2.0, 2.5, 2.0]).sentences(), "none of 3 groups", "1 is worse off")
    alone = table(labels=["a"], own=[1.0], pca=[1.0], loss=[1.0], count=[3])
    assert alone.sentences() == ""


@pytest.mark.parametrize("centering", ["global", "group"])
@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_some_group_is_worse_off_in_every_subspace_but_that_of_pca(centering, loss):
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 5)) * rng.uniform(0.5, 3, (3, 5))[groups] + 3 * groups[:, None]
    problem = Problem(GroupMoments.from_rows(X, groups), 2, aggregation=loss, centering=centering)
    worse = []
    for _ in range(50):
        basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
        losses = problem.group_losses(basis)
        shown = GroupTable.from_problem(problem, losses, "random")
        assert shown.pca_is_best == (centering == "global")
        worse.append(len(shown.worse_off))
    # With the groups' own means nothing is promised, and with other losses than a subspace's.
    assert min(worse) >= 1 or centering == "group"
    other = GroupTable.from_problem(problem, losses, "audited", subspace=False)
    assert not other.pca_is_best
