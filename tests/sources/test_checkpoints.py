"""Checkpoints: a pass that is interrupted goes on, and files that changed are refused."""

import os

import pytest

from fairpca import GroupMoments
from fairpca.sources import checkpoints as checkpoint_module
from fairpca.sources import read_moments

from moments_of import (
    READ,
    assert_same,
    expected,
    five_files,
    write_parquet,
)
from moments_of import small_batches as small_batches
from texts import refused

pytestmark = [
    pytest.mark.usefixtures("small_batches"),
    pytest.mark.filterwarnings("ignore:Columns without numbers are left out"),
]


def test_a_damaged_file_leaves_the_others_in_the_checkpoint(tmp_path):
    path, frame = five_files(tmp_path)
    checkpoint = path.parent / f"{path.name}.moments"
    whole = (path / "3.parquet").read_bytes()
    (path / "3.parquet").write_bytes(whole[: len(whole) // 2])
    options = {"sensitive_features": "sex", "checkpoint": checkpoint, **READ}
    with refused(ValueError, "3.parquet'", "cannot be read"):
        read_moments(path, **options)
    assert_same(GroupMoments.load(checkpoint), expected(frame.iloc[:300]))
    (path / "3.parquet").write_bytes(whole)
    read = []
    moments = read_moments(path, progress=lambda what, *_: read.append(what), **options)
    assert_same(moments, expected(frame))
    assert set(read) == {"reading 3.parquet", "reading 4.parquet"}
    read.clear()
    again = read_moments(path, progress=lambda what, *_: read.append(what), **options)
    assert_same(again, expected(frame))
    assert not read


@pytest.mark.parametrize("place", [1, 4, 7, 9])
def test_a_pass_that_is_interrupted_goes_on(place, tmp_path):
    path, frame = five_files(tmp_path)
    checkpoint = path.parent / f"{path.name}.moments"
    options = {"sensitive_features": ["sex", "class"], "sample_weight": "weight", **READ}
    calls = []

    def interrupt(*what):
        calls.append(what)
        if len(calls) == place:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_moments(path, checkpoint=checkpoint, progress=interrupt, **options)
    done = int(calls[-1][0].removeprefix("reading ")[0])  # the files before the one at hand
    reference = expected(frame.iloc[: 100 * done], ["sex", "class"], True) if done else None
    if reference is None:
        assert not checkpoint.exists()
    else:
        assert_same(GroupMoments.load(checkpoint), reference)
    moments = read_moments(path, checkpoint=checkpoint, **options)
    assert_same(moments, expected(frame, ["sex", "class"], True))


def test_the_checkpoint_is_written_during_the_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_module, "_PATIENCE", -1.0)
    path, _ = five_files(tmp_path)
    checkpoint = path.parent / f"{path.name}.moments"
    counts = []

    def look(*what):
        if checkpoint.exists():
            counts.append(int(GroupMoments.load(checkpoint).count.sum()))

    read_moments(path, checkpoint=checkpoint, progress=look)
    assert counts == sorted(counts)
    assert {100, 200, 300} <= set(counts)


def test_new_files_may_come_and_old_ones_must_stay(tmp_path):
    path, frame = five_files(tmp_path)
    checkpoint = path.parent / f"{path.name}.moments"
    options = {"sensitive_features": "sex", "checkpoint": checkpoint, **READ}
    last = (path / "4.parquet").read_bytes()
    os.unlink(path / "4.parquet")
    assert_same(read_moments(path, **options), expected(frame.iloc[:400]))
    (path / "4.parquet").write_bytes(last)
    assert_same(read_moments(path, **options), expected(frame))
    with refused(ValueError, "other columns", "options"):
        read_moments(path, **{**options, "sensitive_features": "class"})
    write_parquet(frame.iloc[:90], path / "1.parquet")
    with refused(ValueError, "1.parquet'", "changed", "checkpoint"):
        read_moments(path, **options)
    os.unlink(path / "1.parquet")
    with refused(ValueError, "1.parquet'", "changed", "not among"):
        read_moments(path, **options)
    expected(frame).save(checkpoint)
    with refused(ValueError, "no checkpoint"):
        read_moments(path, **options)
    checkpoint.write_bytes(checkpoint.read_bytes()[:-9])
    with refused(ValueError, "damaged"):
        read_moments(path, **options)
