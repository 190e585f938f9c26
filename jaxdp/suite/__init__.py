"""A frozen benchmark of private learners and estimators: instances, a protocol, results in files, and standings.

`python -m jaxdp bench my_module:my_learner` plays the benchmark, and `--standings DIR` compares the results of several
learners.
"""

from jaxdp.suite import v1
from jaxdp.suite.v1 import INSTANCES, Instance

__all__ = ["INSTANCES", "Instance", "v1"]
