"""Studies: what `python -m jaxdp run NAME` runs. A study is a build, its axes and a figure."""

from collections.abc import Callable

from jaxdp.studies import dueling_regret, private_policy, private_ranking, reward_estimation
from jaxdp.studies.command import Printed, Study

STUDIES: dict[str, Callable[..., Study | Printed]] = {
    "reward-estimation": reward_estimation.options,
    "private-ranking": private_ranking.options,
    "private-policy": private_policy.options,
    "dueling-regret": dueling_regret.options,
}


def study(name: str) -> Callable[..., Study | Printed]:
    """A study, as a function of its options.

    Args:
        name: as in `python -m jaxdp run NAME`.

    Raises:
        ValueError: if there is no study of that name.
    """
    if name not in STUDIES:
        raise ValueError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]
