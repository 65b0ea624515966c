"""The type of the arrays that nearly all modules work with."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
