"""A contract for import-linter: no package imports the private modules of another."""

from __future__ import annotations

from typing import Any

import grimp
from importlinter import Contract, ContractCheck, fields, output


class PrivateModulesContract(Contract):
    """A module whose name begins with an underscore is imported by its own package only.

    Its own package is the one that it lies in, with everything below that. The packages in `open`
    are for all.
    """

    type_name = "private"

    open = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Find the imports that break the contract."""
        opened: Any = self.open  # a field of the class, and a set or None once it is read
        broken = [
            f"{importer} -> {imported}"
            for imported in sorted(graph.modules)
            for owner in [_owner(imported, opened or set())]
            if owner is not None
            for importer in sorted(graph.find_modules_that_directly_import(imported))
            if importer != owner and not importer.startswith(f"{owner}.")
        ]
        return ContractCheck(kept=not broken, metadata={"broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports that break the contract."""
        for line in check.metadata["broken"]:
            output.print_error(f"- {line}", bold=False)


def _owner(module: str, open_packages: Any) -> str | None:
    """The package that may import a private module; None if everyone may."""
    parts = module.split(".")
    for i, part in enumerate(parts):
        private = part.startswith("_") and part not in ("__main__", "__init__")
        if private and ".".join(parts[: i + 1]) not in open_packages:
            return ".".join(parts[:i])
    return None
