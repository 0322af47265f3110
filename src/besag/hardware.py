"""Where numbers are computed, how precisely, by how many threads, and in how much memory.

Knows devices and dtypes. Refuses to know models: it imports nothing but torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from besag.errors import BesagError, nearest

DEVICES = ("auto", "cpu", "cuda", "mps")
SYNONYMS = {"gpu": "cuda"}
DTYPES = {
    "bfloat16": torch.bfloat16,
    "bf16": torch.bfloat16,
    "float16": torch.float16,
    "fp16": torch.float16,
    "half": torch.float16,
    "float32": torch.float32,
    "fp32": torch.float32,
    "float": torch.float32,
    "float64": torch.float64,
    "fp64": torch.float64,
    "double": torch.float64,
    "int8": torch.int8,
}
LOW_PRECISION = (torch.bfloat16, torch.float16)

# Threads with too little to do wait for one another at full speed. On two busy cores a few short sequences cost a
# network of 20 million parameters ten times the CPU seconds on two threads that they cost on one.
PARAMETERS_A_THREAD = 2**25
# MKL may multiply few rows (5 to 7 and 9 to 11 on an AMD EPYC) in another way by one thread than by two: the last bits
# of a lone short text would tell how many there were. "Strict" means the same bits by any number. There, by one thread,
# 9, 64 and 4,096 rows of 384 numbers took as long with it, to 1%; other processors were not tried.
MKL_MODE, STRICT = "MKL_CBWR", "AUTO,STRICT"
_counting = threading.Lock()  # torch has one number for all threads: two who lower it at once would not raise it again

ROOT = Path("/")  # where Linux tells of memory: proc, sys
# One line a generation of control groups: what /proc/self/cgroup calls it, where it is mounted, the files of what may
# be used and what is used, and what the used memory says of files that are only cached.
CONTROL_GROUPS = (
    ("", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)

# A processor may lack the instructions that torch chooses for a low precision, and then the whole process dies: no
# exception is raised. So the products that a network needs are tried in a child, which may die instead. Several sizes,
# because torch chooses its kernels by size.
TRIAL_SECONDS = 120.0
TRIAL = """
import sys, torch
dtype = getattr(torch, sys.argv[1])
for size in (8, 64, 512):
    square = torch.full((size, size), 0.5, dtype=dtype)
    layer = torch.nn.Linear(size, size, dtype=dtype)
    with torch.no_grad():
        answer = layer(square @ square)
    assert bool(torch.isfinite(answer).all())
"""

# Products of 8-bit numbers may also be wrong: without VNNI they are added in pairs to 16 bits, which overflow.
EIGHT_BIT_TRIAL = """
import torch
for rows, inner, outer in ((1, 8, 8), (3, 40, 72), (64, 256, 256), (512, 768, 768)):
    whole = torch.randint(0, 256, (rows, inner), dtype=torch.uint8)
    weight = torch.randint(-127, 128, (outer, inner), dtype=torch.int8)
    whole[0], weight[0], weight[1] = 255, 127, -127
    packed = torch.ops.onednn.qlinear_prepack(weight, None)
    ones, zeros = torch.ones(outer), torch.zeros(outer, dtype=torch.int64)
    found = torch.ops.onednn.qlinear_pointwise(
        whole, 1.0, 0, packed, ones, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )
    exact = whole.double() @ weight.double().T
    assert bool(((found.double() - exact).abs() <= 1e-6 * exact.abs()).all()), "products of 8-bit numbers overflow"
"""
KILLED = "was killed by signal"
CPU_ISA, WITHOUT_AMX = "ONEDNN_MAX_CPU_ISA", "AVX512_CORE_VNNI"  # a setting of oneDNN: what it may use


def choose_device(device: str | torch.device | None = None) -> torch.device:
    """The device asked for; with None or "auto" the first there is of cuda, mps and cpu."""
    asked = "auto" if device is None else str(device).strip().lower()
    asked = SYNONYMS.get(asked, asked)
    if asked == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    kind, _, index = asked.partition(":")
    if kind not in DEVICES[1:] or (":" in asked and not index.isdecimal()):
        raise BesagError(
            f"{str(device)!r} is not a device besag knows: it knows {', '.join(DEVICES)}, and 'cuda:1' for the second "
            f"of several.{nearest(kind, DEVICES)}"
        )
    if kind == "cuda" and not torch.cuda.is_available():
        raise BesagError(
            f"the device {str(device)!r} was asked for, but torch {torch.__version__} finds no CUDA device here; "
            f"'cpu' always works"
        )
    if kind == "cuda" and index and int(index) >= torch.cuda.device_count():
        raise BesagError(
            f"the device {str(device)!r} was asked for, but there are {torch.cuda.device_count()} CUDA devices here, "
            f"counted from 'cuda:0'"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise BesagError(f"the device {str(device)!r} was asked for, but torch finds no MPS device here; use 'cpu'")
    return torch.device(asked)


def choose_dtype(dtype: str | torch.dtype | None, device: str | torch.device) -> torch.dtype:
    """The dtype asked for; with None or "auto" bfloat16 on cuda, float32 elsewhere.

    A low precision that this processor cannot compute in is answered with a warning and float32.
    """
    kind = torch.device(device).type
    on_cpu = kind == "cpu"
    asked = "auto" if dtype is None else str(dtype).strip().lower().removeprefix("torch.")
    if asked == "auto":
        return torch.bfloat16 if kind == "cuda" else torch.float32
    if asked not in DTYPES:
        raise BesagError(
            f"{str(dtype)!r} is not a precision besag knows: it knows auto, {', '.join(DTYPES)}."
            f"{nearest(asked, ['auto', *DTYPES])}"
        )
    chosen = DTYPES[asked]
    if chosen is torch.int8 and not on_cpu:
        raise BesagError(
            f"{asked!r} was asked for on {kind}, and products of 8-bit numbers run on a CPU only: say 'bfloat16' or "
            f"'float32', as which weights that are stored in eight bits are loaded, too"
        )
    if on_cpu and chosen in LOW_PRECISION and (failure := cpu_failure(chosen)):
        warnings.warn(
            f"{asked!r} was asked for, but this processor cannot compute in it ({failure}): float32 is used instead",
            stacklevel=2,
        )
        return torch.float32
    return chosen


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """To the device. From the host to CUDA by way of pinned memory: a plain copy would wait for all launched work."""
    if device.type == "cuda" and not tensor.is_cuda:
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def memory_available(device: torch.device | None = None) -> int | None:
    """Bytes that may still be taken on the device (if not given, by the host); None where nobody tells.

    On the host it is the least of what the machine has free, what the limits of this process's control groups (a
    container, a batch job) leave, and what `ulimit -v` leaves.
    """
    if device is not None and device.type == "cuda":
        idle = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # torch keeps it for reuse
        return torch.cuda.mem_get_info(device)[0] + idle
    told = [free for free in (_machine_free(), *_control_groups_free(), _address_space_free()) if free is not None]
    return max(0, min(told)) if told else None


def _machine_free() -> int | None:
    kilobytes = _named_numbers(ROOT / "proc/meminfo").get("MemAvailable:")
    if kilobytes is not None:
        return 1024 * kilobytes
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def _control_groups_free() -> Iterator[int]:
    """What each limit leaves: of the group that this process is in, and of every group around it."""
    try:
        lines = (ROOT / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, inside = (*line.split(":", 2), "", "")[:3]
        for controller, mount, limit, used, cached in CONTROL_GROUPS:
            if controller not in controllers.split(","):
                continue
            own = PurePosixPath(inside.lstrip("/"))
            for group in (own, *own.parents):  # the last is the mount itself, all that a container may see
                folder = ROOT / mount / group
                most, now = _number(folder / limit), _number(folder / used)
                if most is not None and now is not None:
                    yield most - now + _named_numbers(folder / "memory.stat").get(cached, 0)


def _address_space_free() -> int | None:
    try:
        import resource  # which Windows has not

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int((ROOT / "proc/self/statm").read_text().split()[0])
    except (ImportError, OSError, ValueError):
        return None
    return None if most == resource.RLIM_INFINITY else most - pages * resource.getpagesize()


def _number(file: Path) -> int | None:
    """The number a file holds; None where there is no file, or where it says "max"."""
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _named_numbers(file: Path) -> dict[str, int]:
    """From lines of a name and a number, maybe with a unit; nothing where there is no such file."""
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except (OSError, ValueError):
        return {}
    return {line[0]: int(line[1]) for line in words if len(line) > 1 and line[1].isdecimal()}


@contextmanager
def few_threads(parameters: int) -> Iterator[None]:
    """In here no more threads than a few short sequences keep busy in a network of this size; afterwards as before."""
    with _counting:
        before = torch.get_num_threads()
        torch.set_num_threads(min(before, 1 + parameters // PARAMETERS_A_THREAD))
        try:
            yield
        finally:
            torch.set_num_threads(before)


def alike_by_any_threads() -> None:
    """From here on products on this CPU have the same bits by any number of threads, unless the user wants otherwise.

    MKL reads this at its first product and never again: it must be said before a network is loaded.
    """
    os.environ.setdefault(MKL_MODE, STRICT)


@cache
def cpu_failure(dtype: torch.dtype) -> str:
    """Why this processor cannot multiply matrices in `dtype`, or "" if it can. Tried once, in a child process."""
    return _trial(TRIAL, str(dtype).removeprefix("torch."))


@cache
def eight_bit_failure() -> str:
    """Why this processor cannot multiply 8-bit numbers exactly, or "" if it can. Tried once, in a child process."""
    failure = _trial(EIGHT_BIT_TRIAL)
    if KILLED in failure and CPU_ISA not in os.environ and not _trial(EIGHT_BIT_TRIAL, **{CPU_ISA: WITHOUT_AMX}):
        failure += f"; it can where {CPU_ISA}={WITHOUT_AMX} stands in the environment from the start"
    return failure


def _trial(program: str, *arguments: str, **environment: str) -> str:
    """Why a program fails in a child process, or "" if it does not."""
    command = [sys.executable, "-c", program, *arguments]
    try:
        trial = subprocess.run(
            command, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"a small trial in a child process took more than {TRIAL_SECONDS:g} seconds"
    except OSError as problem:
        return f"no child process could be started to try it: {problem}"
    if trial.returncode < 0:
        return f"a trial in a child process {KILLED} {-trial.returncode}"
    if trial.returncode > 0:
        complaint = trial.stderr.strip().splitlines() or ["it said nothing"]
        return f"a trial in a child process failed: {complaint[-1]}"
    return ""
