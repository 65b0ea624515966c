"""Spoken: what is read in sentences, in the terminal and in notebooks."""

import html
from abc import abstractmethod


class Spoken:
    """Printed, it says its sentences."""

    @abstractmethod
    def sentences(self) -> list[str]:
        """What it says."""

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return " ".join(self.sentences())

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.sentences())
