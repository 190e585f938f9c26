"""Faults in noise: equal draws that are not equal by chance, and releases that are not value plus noise."""

import numpy as np
import pytest

from jaxdp.audit.accounting import Change
from jaxdp.audit.findings import find_reuse, wrong_use
from jaxdp.audit.replay import Release, Site
from jaxdp.mechanisms import tape

UNCHANGED = Change(*[np.zeros(1)] * 4)


def release_of(number, distribution, noise, **numbers):
    entry = tape.Entry("noisy", np.zeros((1, *np.shape(noise))), "l1", noise=np.asarray(noise)[None], **numbers)
    return Release(0, Site("update", "noisy", number), entry._replace(distribution=distribution), UNCHANGED)


@pytest.mark.parametrize(
    ("epsilon", "distribution", "noise", "faults"),
    [
        (8.0, "geometric", 0.0, 0),  # most numbers of this noise are zeros
        (8.0, "geometric", 16.0, 1),
        (1.0, "laplace", 0.3, 1),
        (100.0, "laplace", 0.3, 0),  # on a coarse grid
    ],
)
def test_noise_that_may_be_equal_by_chance(epsilon, distribution, noise, faults):
    run = [release_of(n, distribution, noise, sensitivity=1.0, epsilon=epsilon) for n in (0, 1)]
    found = find_reuse([run, run])
    assert len(found) == faults
    assert all("the same noise is drawn twice" in fault for fault in found)


@pytest.mark.parametrize(("released", "faults"), [(5001.7, 0), (5000.0, 1)])
def test_a_large_value_without_its_noise(released, faults):
    entry = tape.Entry("laplace", np.asarray([5000.0]), "l1", noise=np.asarray([1.7]), distribution="laplace")
    entry = entry._replace(sensitivity=np.ones(1), epsilon=np.ones(1), released=np.asarray([released], np.float32))
    found = wrong_use(Release(0, Site("update", "laplace", 0), entry, UNCHANGED))
    assert len(found) == faults
    assert all("not the sum of its value and its recorded noise" in fault for fault in found)
