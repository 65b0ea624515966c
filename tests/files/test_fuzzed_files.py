"""Files that are damaged at random, or made to take much memory."""

import pytest

from studies.file_mutations import ATTACKS
from studies.fuzz_files import KINDS, attack, fuzz

pytestmark = pytest.mark.untraced

N_FUZZED = 240
"""Files of each kind; studies/fuzzed_files.md has 10,000 of each."""


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_refused_in_one_sentence_or_hold_what_they_say(kind):
    outcomes = fuzz(kind, N_FUZZED, seed=1)
    assert not [fault for outcome in outcomes.values() for fault in outcome.faults]
    assert sum(outcome.refused for outcome in outcomes.values()) > 0.8 * N_FUZZED
    assert sum(outcome.other for outcome in outcomes.values()) > 0  # what fits is not refused


@pytest.mark.parametrize(
    ("attacked", "words"),
    [
        (
            "an array that declares a terabyte",
            "is damaged: the shape of its array 'mean' cannot be",
        ),
        ("a million lists in one another", "is damaged: its parts do not fit together"),
        ("7 million empty lists", "is damaged: its header is too large for it"),
        ("4 million short texts", "is damaged: its header is too large for it"),
        ("as many keys as are parsed", "is damaged: it has more numbers than its arrays"),
        ("a first line of 20 million digits", "is no file of moments"),
    ],
)
def test_no_small_file_becomes_a_huge_one(attacked, words):
    outcome = attack("file of moments", attacked)
    assert outcome.faults == []
    assert list(outcome.words) == [f"FILE {words}."]
    size = len(ATTACKS[attacked](KINDS["file of moments"].make()))
    assert outcome.peak < 10 * size + 100e6
    if "parsed" not in attacked:
        assert outcome.peak < 4 * size + 1e6  # nothing was taken in but the file
