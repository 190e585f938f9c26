"""The README's Python runs as printed."""

import re
from pathlib import Path
from typing import Any

import jax
import pytest
import xarray as xr

from jaxdp.preferences import gaussian_comparisons

pytestmark = pytest.mark.once

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    data = gaussian_comparisons(jax.random.key(0), num_samples=200, dim=3)
    names: dict[str, Any] = {"features": data.features, "labels": data.labels}
    for block in blocks:
        exec(block.replace("num_seeds=100,", "num_seeds=4,"), names)
    assert isinstance(names["results"], xr.Dataset)
    assert names["estimate"].converged
    assert "estimator" in capsys.readouterr().out
