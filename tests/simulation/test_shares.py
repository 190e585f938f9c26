"""The share of a process, from arguments and from schedulers' variables."""

import pytest

from jaxdp.simulation.sweeps.shares import which_share


def array(task, first, last, count, **more):
    names = {"ID": task, "MIN": first, "MAX": last, "COUNT": count}
    return {**{f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in names.items()}, "SLURM_PROCID": "0", **more}


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        ((None, None), array(3, 0, 9, 10), (0, 1)),  # a scheduler's variables count only when asked for
        ((2, 5), array(3, 0, 9, 10), (2, 5)),
        (("auto", "auto"), array(3, 0, 9, 10), (3, 10)),
        (("auto", "auto"), array(5, 1, 9, 5), (2, 5)),  # --array=1-9:2
        (("auto", "auto"), array(4, 4, 4, 1), (0, 1)),
        (("auto", "auto"), array(1, 0, 3, 4, SLURM_PROCID="2", SLURM_STEP_NUM_TASKS="3"), (5, 12)),  # srun in an array
        (("auto", "auto"), {"SLURM_PROCID": "6", "SLURM_NTASKS": "8"}, (6, 8)),
        (("auto", 4), {"JOB_COMPLETION_INDEX": "3"}, (3, 4)),
    ],
)
def test_who_is_who(arguments, variables, expected):
    assert which_share(arguments[0], arguments[1], variables) == expected


@pytest.mark.parametrize(
    ("arguments", "variables", "message"),
    [
        ((1, None), {}, "process_index and num_processes must be given together, got 1 and None"),
        ((2, 2), {}, "process_index must be < num_processes = 2, got 2"),
        ((-1, 2), {}, "process_index must be an integer >= 0, got -1"),
        (("first", 2), {}, "process_index must be an integer >= 0, got 'first'"),
        ((0, 0), {}, "num_processes must be an integer >= 1, got 0"),
        (("auto", "auto"), {}, "process_index must be a number if no scheduler sets SLURM_ARRAY_TASK_ID"),
        (("auto", "auto"), {"JOB_COMPLETION_INDEX": "3"}, "num_processes must be a number in a Kubernetes job"),
        (("auto", "auto"), array(2, 1, 7, 3), "process_index must be given for an array of tasks with gaps"),
        (("auto", 4), {"JOB_COMPLETION_INDEX": "x"}, "JOB_COMPLETION_INDEX must be an integer, got 'x'"),
        (("auto", 3), {"JOB_COMPLETION_INDEX": "3"}, "process_index must be < num_processes = 3, got 3"),
    ],
)
def test_who_is_nobody(arguments, variables, message):
    with pytest.raises(ValueError, match=message):
        which_share(arguments[0], arguments[1], variables)
