"""The committed figures of people beyond the sample: what they claim, and a sample of them anew."""

import json

import pytest

from studies import beyond_the_sample

pytestmark = pytest.mark.untraced

DATA = json.loads(beyond_the_sample.DATA.read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_data():
    page = beyond_the_sample.TARGET.read_text(encoding="utf-8")
    assert page == beyond_the_sample.page(DATA)


@pytest.mark.parametrize("family", beyond_the_sample.FAMILIES, ids=lambda family: family.name)
def test_shrinkage_is_nearly_as_good_as_the_better_of_pca_and_plain(family):
    found = DATA["populations"][family.name]
    if family.apart:
        assert found["auto"] <= 1.1 * min(found["PCA"], found["plain"])
        assert found["known"] <= min(found["PCA"], found["plain"], found["auto"])
    else:
        assert found["auto"] <= 0.15 * found["plain"]


def test_estimates_have_less_bias_than_what_they_are_made_of():
    for found in DATA["bias"].values():
        assert found["own in sample"] < 0 < found["own held out"]
        assert abs(found["own estimate"]) < 0.3 * -found["own in sample"]


def test_a_first_draw_is_what_the_solver_finds():
    for family in beyond_the_sample.FAMILIES[:2]:
        found = beyond_the_sample.population_draw(family, beyond_the_sample.FIRST_SEED)
        assert found == pytest.approx(DATA["populations"][family.name]["first draw"], abs=1e-6)
