"""Print, as pip constraints, the oldest versions that pyproject.toml admits."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
for requirement in [*project["dependencies"], *extras["frames"], *extras["test"]]:
    floor = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
    if floor:
        print(f"{floor[1]}=={floor[2]}")
