"""Parameters of learners that compare confidence bounds on preferences: epsilon, and the width of the bounds."""

from jaxdp.core import Scalar, leaf_rounded_down, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.validation import check_above, check_epsilon, check_number


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity adds no noise.
        exploration_rate: [] float > 1/2, the factor of ln t under the square root in a bound's width.
    """

    epsilon: Scalar
    exploration_rate: Scalar


def params(*, epsilon: float, exploration_rate: float = 0.51) -> Params:
    """Checks and builds the parameters of a grid point.

    Raises:
        ValueError: if epsilon is not > 0, or exploration_rate is not finite and > 1/2.
    """
    check_number("exploration_rate", check_above("exploration_rate", exploration_rate, 0.5))
    return Params(
        epsilon=leaf_rounded_down("epsilon", check_epsilon(epsilon)),
        exploration_rate=scalar_leaf("exploration_rate", exploration_rate),
    )
