"""Forms for CPUs and other devices: which are traced, and which is computed."""

import jax
import jax.numpy as jnp
import pytest

from jaxdp.numerics.platforms import by_platform, has_only_cpus
from tests.any_device import any_device


def lowered(traced):
    def form(name):
        def computed(value):
            traced.append(name)
            return jnp.sin(value) if name == "cpu" else jnp.cos(value)

        return computed

    return jax.jit(lambda value: by_platform(value, cpu=form("cpu"), default=form("default"))).trace(1.0)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="of CPUs alone")
def test_a_process_with_cpus_alone_traces_their_form_alone():
    traced = []
    text = lowered(traced).lower().as_text()
    assert traced == ["cpu"]
    assert "stablehlo.sine" in text


def test_elsewhere_each_platform_has_its_form():
    traced = []
    with any_device():
        trace = lowered(traced)
        texts = {platform: trace.lower(lowering_platforms=(platform,)).as_text() for platform in ("cpu", "cuda")}
    assert set(traced) == {"cpu", "default"}
    assert ["stablehlo.sine" in texts[platform] for platform in ("cpu", "cuda")] == [True, False]
    assert ["stablehlo.cosine" in texts[platform] for platform in ("cpu", "cuda")] == [False, True]


@pytest.mark.parametrize(
    ("default", "named", "only"),
    [("cpu", None, True), ("cpu", "cpu", True), ("cpu", "cpu,cuda", False), ("gpu", None, False)],
)
def test_other_devices_are_known_by_jax_s_platforms(default, named, only, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: default)
    before = getattr(jax.config, "jax_platforms", None)
    jax.config.update("jax_platforms", named)
    try:
        assert has_only_cpus.__wrapped__() == only
    finally:
        jax.config.update("jax_platforms", before)
