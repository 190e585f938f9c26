"""Determines this process's share of a sweep, from arguments or from environment variables of a scheduler."""

import os
from collections.abc import Mapping

from jaxdp.validation import check_count

AUTO = "auto"
SOURCES = "SLURM_ARRAY_TASK_ID, SLURM_PROCID or JOB_COMPLETION_INDEX (a Kubernetes indexed job)"


def which_share(
    index: int | str | None, count: int | str | None, variables: Mapping[str, str] | None = None
) -> tuple[int, int]:
    """Returns (index of this process, number of processes).

    Args:
        index: index in [0, count); "auto" reads it from the scheduler's variables; None means 0 if count is also None.
        count: number of processes; "auto" reads it from the scheduler's variables; None means 1 if index is also None.
        variables: environment variables; None means the variables of this process.

    Raises:
        ValueError: if only one of index and count is given; if one of them is out of range, or is text other than
            "auto". With "auto": if no scheduler sets the variables, a variable is not an integer, an array of tasks has
            gaps, or count is "auto" in a Kubernetes job, which sets no variable for the count.
    """
    if index is None and count is None:
        return 0, 1
    if index is None or count is None:
        raise ValueError(f"process_index and num_processes must be given together, got {index} and {count}")
    if AUTO in (index, count):
        scheduled_index, scheduled_count = _scheduler(os.environ if variables is None else variables)
        index = scheduled_index if index == AUTO else index
        if count == AUTO:
            if scheduled_count is None:
                raise ValueError("num_processes must be a number in a Kubernetes job (.spec.completions), got auto")
            count = scheduled_count
    number, position = check_count("num_processes", count), check_count("process_index", index, 0)  # refuse text
    if position >= number:
        raise ValueError(f"process_index must be < num_processes = {number}, got {position}")
    return position, number


def _scheduler(variables: Mapping[str, str]) -> tuple[int, int | None]:
    """Returns this process's (index, count) from variables of SLURM or Kubernetes; Kubernetes gives None as count.

    In a SLURM array, index and count are over the processes of all tasks.
    """

    def number(name: str) -> int:
        try:
            return int(variables[name])
        except (KeyError, ValueError):
            raise ValueError(f"{name} must be an integer, got {variables.get(name)!r}") from None

    if "SLURM_ARRAY_TASK_ID" in variables:
        first, last, count = (number(f"SLURM_ARRAY_TASK_{name}") for name in ("MIN", "MAX", "COUNT"))
        step = (last - first) // (count - 1) if count > 1 else 1
        task, remainder = divmod(number("SLURM_ARRAY_TASK_ID") - first, step)
        if remainder or first + step * (count - 1) != last:
            raise ValueError(
                f"process_index must be given for an array of tasks with gaps, got auto and {count} tasks from {first} "
                f"to {last}"
            )
        if "SLURM_STEP_NUM_TASKS" in variables:
            processes_per_task = number("SLURM_STEP_NUM_TASKS")
            return task * processes_per_task + number("SLURM_PROCID"), count * processes_per_task
        return task, count
    if "SLURM_PROCID" in variables:
        name = "SLURM_STEP_NUM_TASKS" if "SLURM_STEP_NUM_TASKS" in variables else "SLURM_NTASKS"
        return number("SLURM_PROCID"), number(name)
    if "JOB_COMPLETION_INDEX" in variables:
        return number("JOB_COMPLETION_INDEX"), None
    raise ValueError(f"process_index must be a number if no scheduler sets {SOURCES}, got auto")
