"""The README's Python runs as printed."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
import xarray as xr

from jaxdp.preferences import gaussian_comparisons

pytestmark = pytest.mark.once

README = Path(__file__).parents[1] / "README.md"


BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
SMALLER = {"num_seeds=1000": "num_seeds=4", "num_seeds=100,": "num_seeds=4,", '"num_seeds": 1000': '"num_seeds": 4'}
SMALLER |= {"[1000, 3000]": "[100]", "num_seeds=50,": "num_seeds=4,"}


def test_python_blocks_run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(BLOCKS) == 9
    data = gaussian_comparisons(jax.random.key(0), num_samples=200, dim=3)
    names: dict[str, Any] = {"features": data.features, "labels": data.labels, "__name__": "a notebook"}
    for block in BLOCKS:
        for large, small in SMALLER.items():
            block = block.replace(large, small)
        exec(block, names)
    assert isinstance(names["results"], xr.Dataset)
    assert names["estimate"].converged
    assert "estimator" in capsys.readouterr().out
    assert (tmp_path / "runs" / "ranking.zarr").is_dir()


@pytest.mark.slow
def test_the_dask_script_runs(tmp_path):
    pytest.importorskip("distributed")
    define, cluster = (next(block for block in BLOCKS if text in block) for text in ("def ranking", "LocalCluster"))
    define = define.split("results =")[0]
    (tmp_path / "script.py").write_text(f"import jax\n\nimport jaxdp\n\n\n{define}\n{cluster}")
    result = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    results = xr.open_zarr(tmp_path / "runs" / "ranking.zarr")
    assert results.computed.all()
    assert results.pseudo_regret.mean("seed").notnull().all()
