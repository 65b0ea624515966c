"""The committed table of unscaled columns: what it claims, and a sample of it anew."""

import pytest

from studies import raw_columns

pytestmark = pytest.mark.untraced

LINES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in raw_columns.TARGET.read_text(encoding="utf-8").splitlines()
    if line.startswith(("| Adult", "| Credit"))
]


def test_every_number_of_dimensions_is_there():
    found = {(line[0], int(line[1])) for line in LINES}
    expected = {
        (name, r)
        for name in raw_columns.GROUPINGS
        for r in range(1, 14 if name.startswith("Adult") else 23)
    }
    assert found == expected
    assert len(LINES) == len(expected)


def test_what_is_called_equal_is_equal():
    called = [line for line in LINES if line[2] in ("optimal", "bounded")]
    assert len(called) >= 110
    assert all(float(line[5]) <= 1e-6 for line in called)


@pytest.mark.parametrize(
    "sample",
    [("Adult, sex", 13), ("Adult, race", 7), ("Credit, sex", 22), ("Credit, marriage", 20)],
)
def test_a_sample_is_what_the_solver_finds(sample):
    (line,) = [line for line in LINES if (line[0], int(line[1])) == sample]
    found = raw_columns.case(*sample)
    assert found["ending"] == line[2]
    assert found["largest"] == pytest.approx(float(line[4]), rel=1e-4)
    assert found["loss"] == pytest.approx(float(line[6]), rel=1e-3)
    assert found["apart"] <= 1e-6
    assert found["says equal"]
