"""Records the processor and the compiler's settings, because both can change the last bits of results.

XLA compiles for the instructions of the current processor, such as fused multiply-adds and vectors. Libraries for
matrix products (within XLA) and for factorizations (SciPy's OpenBLAS) choose their code by the processor at run time,
independently of XLA's flags. Under `--xla_cpu_max_isa=AVX2`, matrix products on an AVX-512 processor and on an
(emulated) Haswell still differed, but sums and elementary functions were equal.

The effect on results was measured on 256 seeds of `reward-estimation`'s estimators (n = 1000, dim 5, epsilon 0.5 and
infinity, in 32-bit mode, compared with an AVX-512 processor). Another instruction set (AVX2, AVX, SSE4.2), another
vector width, no optimisation, fast math, or OpenBLAS's code for another processor changed 5% to 98% of the errors in
their last bits. No mean changed by more than 0.0001 of its standard error, and no single run by more than 0.001 of the
standard deviation over runs. The one exception is the output `certificate` of the solver. It consists of rounding
errors, and its mean changed by 0.13 standard errors. A decision that depends on a last bit (an argmax, an elimination)
can change a run by more.
"""

import os
import platform
import re
import shlex
import socket
import subprocess
from pathlib import Path
from typing import Any

import jax

CPUINFO = Path("/proc/cpuinfo")
MODEL = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU variant", "CPU part")
ARITHMETIC = re.compile(r"sse|ssse|pni|avx|fma|f16c|amx|xop")  # features of x86 that can change a float
# Flags that change no result: the compiler's dumps, waiting times, the number of devices, the folder of CUDA.
HARMLESS = re.compile(r"xla_dump_|xla_force_host_platform_device_count|xla_cpu_collective_|xla_gpu_cuda_data_dir")
VARIABLES = ("LIBTPU_INIT_ARGS", "NVIDIA_TF32_OVERRIDE", "OPENBLAS_CORETYPE")
THREADS = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
SMALL = 64  # maximum number of rows and of columns of matrices that OpenBLAS factorizes on one thread
OPTIONS = (
    "jax_disable_most_optimizations",
    "jax_exec_time_optimization_effort",
    "jax_memory_fitting_effort",
    "jax_optimization_level",
)


def processor(device: Any) -> str:
    """Returns a text that identifies the processor of a JAX device.

    For a CPU, the text contains the model, as one word, and the features that can change floats. For any other device,
    it contains the kind and the version of the platform, such as CUDA. If the model of a CPU is unknown, the text
    contains the host's name, so that it differs from the text of every other host.
    """
    if device.platform != "cpu":
        return " ".join(f"{device.device_kind} {device.client.platform_version}".split())
    return host_processor()


def host_processor() -> str:
    """Returns a text with the CPU's model, as one word, and its features that can change floats; does not start JAX.

    If the model is unknown, the word contains the host's name.
    """
    fields, model = _first_cpu(), ""
    if fields:
        model = "-".join(fields[name] for name in MODEL if name in fields)
    elif platform.system() == "Darwin":
        model = _output("sysctl", "-n", "machdep.cpu.brand_string")
    elif platform.system() == "Windows":
        model = platform.processor()
    features = [name for name in fields.get("flags", "").split() if ARITHMETIC.match(name)]
    features += fields.get("Features", "").split()
    model_word = "-".join(model.split()) or f"unknown-of-host-{socket.gethostname()}"
    return " ".join([model_word, *sorted(set(features))])


def settings() -> dict[str, str]:
    """Returns the flags, environment variables and JAX options that can change results.

    The function reads the current values, but XLA reads its flags only once, when JAX is first used.
    """
    flags = {name: value for name, value in _xla_flags().items() if not HARMLESS.match(name)}
    flags |= {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    options = {name: _option(name) for name in OPTIONS}
    return dict(sorted(flags.items())) | {name: str(value) for name, value in options.items() if value is not None}


def _option(name: str) -> Any:
    """Returns an option of JAX; None if this version does not have the option."""
    try:
        return jax.config.read(name)  # not all options are attributes of `jax.config`
    except (AttributeError, KeyError):
        return None


def blas_threads(text: str) -> int | None:
    """Returns the number of OpenBLAS threads if this number can change the results of a program.

    `text` is the program's StableHLO text. Returns None if the program factorizes no matrix with more than `SMALL` rows
    or columns.
    """
    operands = re.findall(
        r"@lapack_.*?: \(tensor<((?:\d+x)+)", text
    )  # operands are matrices with leading axes of lanes
    sizes = [int(size) for shape in operands for size in shape.split("x")[:-1][-2:]]
    if max(sizes, default=0) <= SMALL:
        return None
    values = (os.environ.get(name, "") for name in THREADS)
    return min(next((int(value) for value in values if value.isdigit() and int(value)), cores()), cores())


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _xla_flags() -> dict[str, str]:
    """Returns XLA's flags keyed by name. If a flag is repeated, its last value counts, as in XLA."""
    text = os.environ.get("XLA_FLAGS", "").strip()
    if text and not text.startswith("-"):  # XLA reads flags from the file of this name
        try:
            text = Path(text).read_text()
        except (OSError, ValueError):
            text = ""
    parts = (part.lstrip("-").partition("=") for part in shlex.split(text))
    return {name: value if equals else "true" for name, equals, value in parts}


def _first_cpu() -> dict[str, str]:
    """Returns Linux's description of the first processor by field; empty if no field identifies the model."""
    try:
        text = CPUINFO.read_text()
    except (OSError, ValueError):
        return {}
    lines = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    fields = {name.strip(): value.strip() for name, _, value in lines}
    return fields if set(MODEL) & set(fields) else {}


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
