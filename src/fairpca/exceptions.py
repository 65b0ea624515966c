"""Warnings of this library."""


class FairnessWarning(UserWarning):
    """The result is not quite what was asked for, or should be read with care."""
