"""Entries with one mistake each are flagged by `python -m jaxdp audit`, and their right twins are not."""

import json
import subprocess
import sys

import jax
import pytest

from jaxdp import registry
from jaxdp.audit import scoreboard
from tests.privacy.conftest import MODULES

WRONG = {
    "rho_claimed_half": "release",
    "counts_without_noise": "counts",
    "half_the_noise_in_blocks": "blocks",
    "half_the_noise_in_feed": "feed",
    "play_is_logged": "rounds",
    "key_reused_after_a_release": "rounds",
    "keeps_the_order": "release",
    "half_the_batch": "",
}
RIGHT = (
    "rho_claimed_half_right",
    "explore_then_commit",
    "tree_counter",
    "play_is_logged_right",
    "key_reused_after_a_release_right",
    "keeps_the_order_right",
    "half_the_batch_right",
)


@pytest.mark.parametrize("name", [name for name in WRONG if name != "half_the_batch"])
def test_a_planted_mistake_is_flagged(planted, name):
    """Uses few trials, on the path of the mistake where only an attack finds it."""
    assert name in planted
    trials = 200_000 if name == "rho_claimed_half" else 20_000  # few show little of a rho
    (row,) = scoreboard(jax.random.key(0), registry.attacks([name]), trials=trials, searched=False)
    assert row.verdict == "violated", row
    assert row.faults or row.path == WRONG[name], row


@pytest.mark.parametrize("name", ["rho_claimed_half_right", "play_is_logged_right", "key_reused_after_a_release_right"])
def test_its_right_twin_is_not(planted, name):
    """Checks tight claims: at 95% one audit in twenty would refute them."""
    assert name in planted
    (row,) = scoreboard(jax.random.key(0), registry.attacks([name]), trials=20_000, confidence=0.999, searched=False)
    assert row.verdict == "consistent", row


@pytest.mark.parametrize(("names", "verdict"), [(tuple(WRONG), "violated"), (RIGHT, "consistent")])
def test_the_command_at_default_settings(names, verdict, tmp_path):
    table = tmp_path / "audit.json"
    chosen = [word for module in MODULES for word in ("--with", module)]
    done = subprocess.run(
        [sys.executable, "-m", "jaxdp", "audit", *names, *chosen, "--json", str(table)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == (verdict == "violated"), done.stdout + done.stderr
    rows = json.loads(table.read_text())
    assert {row["name"]: row["verdict"] for row in rows} == dict.fromkeys(names, verdict), rows
