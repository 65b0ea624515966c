"""Combinations of options against brute force: a few hundred draws, and that a check can fail."""

import re
import warnings
from collections import Counter
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from studies import combinations
from studies.combinations import Draw, Judged, Verdict, judge

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

N_BLOCKS, BLOCK = 8, 30
"""Draws that the study does not have."""


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_nothing_that_is_said_is_false(block):
    first = combinations.N_DRAWS + block * BLOCK
    verdicts = [judge(seed) for seed in range(first, first + BLOCK)]
    assert [(one.words, one.false) for one in verdicts if one.false] == []
    refused = [one.words for one in verdicts if one.refusal]
    assert all("Pareto" in words for words in refused)
    checks = sum((one.checks for one in verdicts), verdicts[0].checks)
    assert checks["bound"] == checks["value"] >= 0.8 * BLOCK
    assert checks["sentence: words"] >= 0.8 * BLOCK


@pytest.fixture(scope="module")
def fits():
    """Draws with what is judged of them; of each kind of sentence there are some."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(120):
            draw = Draw.of(seed)
            try:
                found.append((draw, draw.fitted()))
            except ValueError:  # what does not go together
                continue
    return found


def found_false(draw, fair, act):
    """What is found false where something wrong is judged."""
    verdict = Verdict("")
    act(Judged(draw, fair, verdict))
    return {about.split(": ")[0] for about in verdict.false}


def test_wrong_numbers_are_found(fits):
    found = set()
    for draw, fair in fits:
        certificate = fair.certificate_
        changes = [
            {"lower_bound": certificate.lower_bound + 1e-3 * abs(certificate.value)},
            {"value": 1.001 * certificate.value},
            {"change_from_pca": -certificate.change_from_pca},
            {"measures": certificate.measures + 0.1 * np.abs(certificate.measures).max()},
        ]
        if certificate.status == "infeasible":
            changes.append({"status": "optimal"})
            changes.append({"violation_bound": 1.001 * certificate.violation_bound})
        if certificate.status in ("bounded", "unresolved"):
            changes.append({"status": "infeasible", "violation_bound": 0.01})
        for change in changes:
            wrong = copy(fair)
            wrong.certificate_ = replace(certificate, **change)
            found |= found_false(draw, wrong, Judged.check_certificate)
        if len(fair.group_table_) > 1 and fair.group_table_.change.any():
            wrong = copy(fair)
            table = fair.group_table_
            wrong.group_table_ = replace(table, loss=table.pca_loss, pca_loss=table.loss)
            found |= found_false(draw, wrong, Judged.check_table)
    names = ("bound", "value", "measures", "change from PCA", "status", "gap", "table")
    assert set(names) <= found


SWAPPED = [
    ("at least", "at most"),
    ("higher", "lower"),
    ("better", "worse"),
    ("larger", "smaller"),
    ("above", "below"),
    ("largest", "smallest"),
    ("more than", "less than"),
    ("impossible", "optimal"),
    ("equal ", "different "),
    ("disparit", "relative disparit"),
    ("share lost", "share kept"),
    ("All bounds are met", "Some bounds are met"),
    ("all bounds are met", "some bounds are met"),
    ("no group", "a group"),
    ("Every group", "No group"),
]


def test_a_wrong_word_is_found_in_every_sentence(fits):
    tried = Counter()
    for draw, fair in fits:
        for statement in fair.certificate_.statements():
            kind, text = combinations._kind(statement.kind), str(statement)
            if combinations.SENTENCES[kind] is combinations.said:
                continue
            for pair in SWAPPED:
                for old, new in (pair, pair[::-1]):
                    if old not in text:
                        continue
                    wrong = text.replace(old, new, 1)
                    judged = Judged(draw, fair, Verdict(""))
                    judged.check_sentence(kind, wrong)
                    assert judged.verdict.false, wrong
                    tried[pair] += 1
    assert len(tried) >= len(SWAPPED) - 2


LOOSE = {
    "equal, bounded": "the gap is no less than what can be gained, which may be nothing",
    "bounds, bounded": "the same",
    "minmax, bounded": "so is the bound beside what was found",
    "equal, infeasible": "so is the bound beside the smallest difference that was found",
    "bounds, infeasible": "the same",
}
"""Sentences with a number that is not always found wrong, because it need not be tight."""


def test_a_wrong_number_is_found_in_every_sentence(fits):
    missed, found = Counter(), Counter()
    for draw, fair in fits:
        judged = Judged(draw, fair, Verdict(""))
        for statement in fair.certificate_.statements():
            kind, text = combinations._kind(statement.kind), str(statement)
            checked = combinations.SENTENCES[kind] is not combinations.said
            if not checked or (combinations.needs_pca(kind) and not judged.pca_is_one):
                continue
            for i, match in enumerate(re.finditer(combinations._NUMBER, text)):
                number = float(match[0].rstrip("."))
                unit = 1.0 if "%" in text[match.end() :][:2] else judged.unit
                if abs(number) < 1e-4 * unit:
                    continue
                caught = False
                for factor in (0.5, 1.5):
                    wrong = text[: match.start()] + f"{factor * number:.6g}"
                    wrong += ("." if match[0].endswith(".") else "") + text[match.end() :]
                    judged.verdict.false.clear()
                    judged.check_sentence(kind, wrong)
                    caught |= bool(judged.verdict.false)
                (found if caught else missed)[kind, i] += 1
    assert {kind for kind, _ in missed} <= set(LOOSE), missed
    assert len({kind for kind, _ in found}) >= 10


def test_what_the_table_says_of_others_is_found_false(fits):
    tried = 0
    for draw, fair in fits:
        judged, text = Judged(draw, fair, Verdict("")), fair.group_table_.sentences()
        if not (
            judged.pca_is_one and np.abs(fair.group_table_.change).max() > 1e-3 * judged.variance
        ):
            continue
        for old, new in (("better", "worse"), (" gain:", " loss:")):
            if old in text and new in text:
                wrong = text.replace(old, "…").replace(new, old).replace("…", new)
                judged.verdict.false.clear()
                judged.check_table_words(wrong)
                same = old == "better" and len(fair.group_table_.better_off) == len(
                    fair.group_table_.worse_off
                )
                assert judged.verdict.false or same, wrong
                tried += 1
    assert tried > 20
