"""Print two kinds of OpenBLAS kernels that this processor can run, other than its own."""

from pathlib import Path

import numpy as np  # noqa: F401  (loads OpenBLAS)
from threadpoolctl import threadpool_info

own = {library.get("architecture") for library in threadpool_info()}
flags = Path("/proc/cpuinfo").read_text().split()
kernels = ["SkylakeX"] * ("avx512f" in flags) + ["Haswell"] * ("avx2" in flags) + ["Sandybridge"]
print(*[kernel for kernel in (*kernels, "Nehalem") if kernel not in own][:2])
