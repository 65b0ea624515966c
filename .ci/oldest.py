"""Print, as pip constraints, the oldest versions that pyproject.toml admits."""

import re
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
tested = [extras[name] for name in extras if name not in ("dev", "docs")]
for requirement in chain(project["dependencies"], *tested):
    floor = re.fullmatch(r"([\w.-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement)
    if floor:
        print(f"{floor[1]}=={floor[2]}")
# Old matplotlib calls functions of pyparsing that newer versions of it warn of.
print("pyparsing<3.3")
