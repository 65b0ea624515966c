"""transform_distributed: columns that are kept beside the reduced ones."""

import dask.dataframe
import numpy as np
import pytest

from fairpca import FairPCA
from fairpca.sources import transform_distributed

from clusters import NAMES, people
from texts import refused

pytestmark = pytest.mark.contract  # Dask and Spark

FRAME = people()


def test_columns_of_a_data_frame_can_be_kept():
    fair = FairPCA(2, groups=None).fit(FRAME[NAMES])
    spread = dask.dataframe.from_pandas(FRAME, npartitions=3)
    reduced = transform_distributed(fair, spread, keep=["sex", "c"])
    assert list(reduced.columns) == ["sex", "c", "fairpca0", "fairpca1"]
    found = reduced.compute()
    np.testing.assert_allclose(found[["fairpca0", "fairpca1"]], fair.transform(FRAME[NAMES]))
    assert found["sex"].tolist() == FRAME["sex"].tolist()
    assert found["c"].tolist() == FRAME["c"].tolist()
    with refused(ValueError, "'idd'"):
        transform_distributed(fair, spread, keep="idd")
    with refused(ValueError, "reduced", "'fairpca1'"):
        transform_distributed(fair, spread.rename(columns={"sex": "FairPCA1"}), keep="FairPCA1")
    with refused(ValueError, "Dask array", "no names"):
        transform_distributed(fair, spread[NAMES].to_dask_array(lengths=True), keep="sex")
