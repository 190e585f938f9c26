"""Studies: what `python -m jaxdp run NAME` runs. A study is a build, its axes and a figure."""

from collections.abc import Callable

from jaxdp.studies import private_ranking, reward_estimation

STUDIES: dict[str, Callable[..., None]] = {
    "reward-estimation": reward_estimation.command,
    "private-ranking": private_ranking.command,
}


def study(name: str) -> Callable[..., None]:
    """The command of a study.

    Args:
        name: as in `python -m jaxdp run NAME`.

    Returns:
        A function of the study's options.

    Raises:
        ValueError: if there is no study of that name.
    """
    if name not in STUDIES:
        raise ValueError(f"study must be one of {', '.join(STUDIES)}, got {name!r}")
    return STUDIES[name]
