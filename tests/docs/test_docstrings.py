"""The checks of docstrings that `make lint` runs find what they are for."""

import pytest

pytest.importorskip("numpydoc", reason="it comes with the tools for the documentation")

from tools import docstrings


class Undocumented:
    def method(self):
        pass


def whole(number):
    """Double a number.

    Parameters
    ----------
    number : int
        What is doubled.

    Returns
    -------
    int
        Twice as much.

    See Also
    --------
    fairpca.FairPCA : Not much alike.

    Examples
    --------
    >>> whole(1)
    2
    """
    return 2 * number


def partial(number, other):
    """Double a number.

    Parameters
    ----------
    number : int
        What is doubled.

    See Also
    --------
    fairpca.MissingPCA : Nowhere.
    """


@pytest.mark.parametrize(
    ("thing", "wanted"),
    [
        (whole, []),
        (partial, ["PR01", "EX01", "which is not there"]),
        (Undocumented, ["GL08", "Undocumented.method: no docstring"]),
    ],
)
def test_what_is_missing_is_found(thing, wanted, monkeypatch):
    monkeypatch.setattr(docstrings, "_found", {"thing": thing, "fairpca.FairPCA": 0}.__getitem__)
    monkeypatch.setattr(docstrings, "_methods", lambda kind: ["method"])
    monkeypatch.setattr(docstrings, "_is_there", lambda name: name == "fairpca.FairPCA")
    said = list(docstrings.complaints("thing"))
    assert len(said) == len(wanted)
    for each, part in zip(said, wanted, strict=True):
        assert part.replace("Undocumented", "thing") in each


def test_the_reference_is_read():
    names = docstrings.public_names()
    assert "fairpca.FairPCA" in names
    assert len(names) > 50
