"""The committed page of attacks on bounds, a few of its problems anew, and the attack itself."""

from dataclasses import replace

import numpy as np
import pytest

from studies import attack_bounds
from studies.subspace_attack import attack, largest_measures, random_bases

PAGE = attack_bounds.TARGET.read_text(encoding="utf-8")


def table(section):
    """The rows of a section's table, as lists of cells."""
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_no_bound_was_beaten_and_all_agree_with_the_program():
    measures, kinds, _ = (table(section) for section in PAGE.split("\n## "))
    assert [row[0] for row in measures] == [
        attack_bounds.name_of(*choice) for choice in attack_bounds.MEASURES
    ]
    assert [row[0] for row in kinds] == list(attack_bounds.KINDS)
    for name, problems, beaten, _, optimal, bounded, _, _, _, program in measures + kinds:
        assert int(problems) == (600 if name in attack_bounds.KINDS else 1000)
        assert int(beaten) == 0
        assert int(optimal) + int(bounded) == int(problems)
        assert float(program) <= 1e-6


@pytest.mark.parametrize("position", [0, 4, 7])
def test_a_few_problems_come_out_as_committed(position):
    row = table(PAGE.split("\n## ")[2])[position]
    drawn = attack_bounds.draw(int(row[0]))
    k, d, _ = drawn.matrices.shape
    assert row[1:5] == [drawn.kind, str(k), str(d), str(drawn.n_components)]
    results = list(attack_bounds.run(drawn, with_program=True, n_steps=30))
    for result, committed in zip(results, row[5:], strict=True):
        assert result.bound == pytest.approx(float(committed), abs=1e-6)
        assert result.bound == pytest.approx(result.by_program, abs=1e-6)
        assert result.margin >= -attack_bounds.ROUNDING


def test_a_false_bound_is_beaten():
    for result in attack_bounds.run(attack_bounds.draw(5), with_program=False, n_steps=30):
        certificate = result.certificate
        false = replace(
            result,
            certificate=replace(certificate, lower_bound=certificate.value + 1e-9 * result.unit),
        )
        assert false.margin < -attack_bounds.ROUNDING


def test_measures_are_those_of_a_projection():
    drawn, rng = attack_bounds.draw(3), np.random.default_rng(0)
    basis = random_bases(rng, 1, drawn.matrices.shape[1], drawn.n_components)
    for choice in attack_bounds.MEASURES:
        problem = drawn.problem(*choice)
        unit = problem.affine.traces.max()
        found = largest_measures(*drawn.measured(*choice), basis)[0]
        assert problem.measures(basis[0]).max() / unit == pytest.approx(found / unit, abs=1e-12)


def test_the_attack_finds_a_known_optimum():
    # Rotating between the first two axes: 2 sin^2 = 1.5 cos^2, so that the largest is 6 / 7.
    matrices = np.array([np.diag([3.0, 1.0, 0.5]), np.diag([1.0, 2.5, 0.4])])
    starts = random_bases(np.random.default_rng(0), 10, 3, 1)
    found = attack(matrices, np.array([3.0, 2.5]), starts, 200)
    assert found.min() == pytest.approx(6 / 7, abs=1e-5)
    assert found.min() >= 6 / 7
