"""Folders with tables for the tests of the program, made once."""

import shutil

import pytest

from fairpca.cli import _terminal, main

from people import FIT, people


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with the same table in all formats, another table and a model."""
    folder = tmp_path_factory.mktemp("people")
    frame = people()
    frame.to_csv(folder / "people.csv", index=False)
    frame.to_parquet(folder / "people.parquet")
    frame.to_feather(folder / "people.arrow")
    people(seed=1).to_csv(folder / "new.csv", index=False)
    model = ["--model", str(folder / "m.fairpca")]
    assert main(["fit", str(folder / "people.csv"), *FIT, *model]) == 0
    return folder


@pytest.fixture
def model(made, tmp_path, monkeypatch):
    """The model in a copy of that folder, which is the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "m.fairpca"


@pytest.fixture
def folder(model):
    """The same without the model."""
    model.unlink()
    return model.parent


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """No signs of life, which would depend on how fast the tests run."""
    monkeypatch.setattr(_terminal, "_PATIENCE", 1e6)
    monkeypatch.setattr(_terminal, "_PATIENCE_ON_A_TERMINAL", 1e6)
