"""Print the files with tests of what is asked of dependencies, as conftest.py lists them."""

import re
from pathlib import Path

conftest = Path(__file__).parents[1] / "conftest.py"
listed = re.search(r"^CONTRACT = \((.*?)^\)", conftest.read_text(encoding="utf-8"), re.M | re.S)
print(*sorted({f"tests/{file}" for file in re.findall(r'"([^":]+\.py)', listed[1])}))
