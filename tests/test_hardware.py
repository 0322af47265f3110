"""Devices, dtypes, threads and memory: what is chosen, what is refused, and what a dying child process leads to."""

from __future__ import annotations

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from besag import hardware
from besag.errors import BesagError
from besag.hardware import (
    DTYPES,
    PARAMETERS_A_THREAD,
    choose_device,
    choose_dtype,
    cpu_failure,
    few_threads,
    memory_available,
    send,
)


@pytest.fixture(autouse=True)
def _forget_trials():
    cpu_failure.cache_clear()
    yield
    cpu_failure.cache_clear()


def devices(monkeypatch, *, cuda: int = 0, mps: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize("asked", [None, "auto", " Auto "])
def test_auto_prefers_cuda_then_mps_then_cpu(monkeypatch, asked):
    devices(monkeypatch, cuda=1, mps=True)
    assert choose_device(asked) == torch.device("cuda")
    devices(monkeypatch, mps=True)
    assert choose_device(asked) == torch.device("mps")
    devices(monkeypatch)
    assert choose_device(asked) == torch.device("cpu")


def test_named_devices(monkeypatch):
    devices(monkeypatch, cuda=2, mps=True)
    assert choose_device("cuda:1") == torch.device("cuda", 1)
    assert choose_device("CUDA") == choose_device("gpu") == torch.device("cuda")
    assert choose_device("mps") == torch.device("mps")
    assert choose_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("wrong", ["cud", "cuda:one", "cuda:", "tpu", "", "meta"])
def test_a_wrong_device_is_quoted(wrong):
    with pytest.raises(BesagError, match="is not a device besag knows") as caught:
        choose_device(wrong)
    assert repr(wrong) in str(caught.value)


def test_a_wrong_device_gets_the_nearest_right_one():
    with pytest.raises(BesagError, match="Did you mean 'cuda'"):
        choose_device("cudda")


def test_a_device_that_is_not_here(monkeypatch):
    devices(monkeypatch)
    with pytest.raises(BesagError, match="finds no CUDA device here"):
        choose_device("cuda")
    with pytest.raises(BesagError, match="finds no MPS device here"):
        choose_device("mps")
    devices(monkeypatch, cuda=1)
    with pytest.raises(BesagError, match="there are 1 CUDA devices"):
        choose_device("cuda:3")


def test_auto_dtype_follows_the_device():
    assert choose_dtype(None, "cuda") == torch.bfloat16
    for device in ("cpu", torch.device("mps")):
        assert choose_dtype(None, device) == choose_dtype("auto", device) == torch.float32


@pytest.mark.parametrize("name", [name for name in DTYPES if name != "int8"])
def test_every_name_means_its_dtype_on_cuda(name):
    assert choose_dtype(name, "cuda:0") == DTYPES[name] == choose_dtype(DTYPES[name], "cuda:0")


def test_a_wrong_dtype_is_quoted_with_the_nearest():
    with pytest.raises(BesagError, match=r"'bfloat61' is not a precision besag knows.* Did you mean 'bfloat16'"):
        choose_dtype("bfloat61", "cpu")
    with pytest.raises(BesagError, match=r"'torch.int64'"):
        choose_dtype(torch.int64, "cpu")


@pytest.mark.parametrize("name", ["float32", "float64", torch.float64])
def test_high_precision_is_never_tried(monkeypatch, name):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a child process was started"))
    assert choose_dtype(name, "cpu").itemsize >= 4


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_this_processor_really_tried(name):
    """Whatever this machine can do, the answer and the warning agree with what became of the child."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        chosen = choose_dtype(name, "cpu")
    failure = cpu_failure(DTYPES[name])
    assert chosen == (torch.float32 if failure else DTYPES[name])
    assert [str(warning.message) for warning in said if failure] == [
        f"{name!r} was asked for, but this processor cannot compute in it ({failure}): float32 is used instead"
        for _ in said
    ]
    assert len(said) == bool(failure)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "killed by signal 4"),
        ("raise NotImplementedError('no kernel for Half')", "NotImplementedError: no kernel for Half"),
        ("raise SystemExit(3)", "it said nothing"),
        ("import time; time.sleep(60)", "took more than 0.5 seconds"),
    ],
)
def test_a_child_that_dies_means_a_warning_and_float32(monkeypatch, program, why):
    monkeypatch.setattr(hardware, "TRIAL", program)
    if "sleep" in program:
        monkeypatch.setattr(hardware, "TRIAL_SECONDS", 0.5)
    with pytest.warns(UserWarning, match="float32 is used instead") as said:
        assert choose_dtype("bfloat16", "cpu") == torch.float32
    assert why in str(said[0].message)


def test_no_child_can_be_started(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.warns(UserWarning, match="no child process could be started"):
        assert choose_dtype("half", "cpu") == torch.float32


def test_a_child_that_lives_means_no_warning_and_is_asked_once(monkeypatch):
    children: list[list[str]] = []

    def run(command, **_):
        children.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [choose_dtype("bf16", "cpu"), choose_dtype(torch.bfloat16, "cpu")] == [torch.bfloat16] * 2
        assert choose_dtype("fp16", "cpu") == torch.float16
    assert [command[-1] for command in children] == ["bfloat16", "float16"]


def test_eight_bit_products_are_tried_in_a_child(monkeypatch):
    """One that dies may live without AMX, and then it is said how; one that is wrong is not tried again."""
    asked: list[str] = []

    def run(command, *, env, **_):
        asked.append(env.get(hardware.CPU_ISA, ""))
        return subprocess.CompletedProcess(command, -4 if not asked[-1] else 0, "", "")

    monkeypatch.delenv(hardware.CPU_ISA, raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    hardware.eight_bit_failure.cache_clear()
    try:
        said = hardware.eight_bit_failure()
        assert "killed by signal 4" in said
        assert f"{hardware.CPU_ISA}={hardware.WITHOUT_AMX}" in said
        assert asked == ["", hardware.WITHOUT_AMX]
        assert hardware.eight_bit_failure() == said
        hardware.eight_bit_failure.cache_clear()
        wrong = subprocess.CompletedProcess([], 1, "", "AssertionError: overflow")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: asked.append("again") or wrong)
        assert hardware.eight_bit_failure() == "a trial in a child process failed: AssertionError: overflow"
        assert asked[2:] == ["again"]
    finally:
        hardware.eight_bit_failure.cache_clear()


def test_only_torch_is_imported():
    program = "import sys, besag.hardware; print('transformers' in sys.modules)"
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert child.stdout == "False\n"


def test_send_leaves_the_numbers_alone():
    here = torch.arange(6.0).view(2, 3)
    assert send(here, torch.device("cpu")) is here
    if torch.cuda.is_available():
        assert torch.equal(send(here, torch.device("cuda")).cpu(), here)


@pytest.fixture
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
@pytest.mark.parametrize(
    ("parameters", "threads"), [(0, 1), (PARAMETERS_A_THREAD, 2), (3 * PARAMETERS_A_THREAD, 4), (10**12, 4)]
)
def test_a_small_network_gets_few_threads_and_none_gets_more_than_there_were(parameters, threads):
    with few_threads(parameters):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four_threads")
def test_two_who_lower_the_number_of_threads_at_once_leave_it_as_it_was():
    def work(_: int) -> int:
        for _ in range(50):
            with few_threads(1):
                pass
        return torch.get_num_threads()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(8))) == {4}
    assert torch.get_num_threads() == 4


GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Files of a machine with 8 GiB free and no limit, to which a test adds its own."""

    def write(**files: object):
        for name, content in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{content}\n")

    monkeypatch.setattr(hardware, "ROOT", tmp_path)
    write(**{"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:    {8 * GIB // 1024} kB", "proc/self/statm": "1000 9 9"})
    return write


def test_memory_is_what_the_machine_has_free_or_not_known(machine, tmp_path, monkeypatch):
    assert memory_available() == memory_available(torch.device("cpu")) == 8 * GIB
    (tmp_path / "proc/meminfo").unlink()
    monkeypatch.setattr(hardware.os, "sysconf", {"SC_AVPHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert memory_available() == 3 * 4096
    monkeypatch.setattr(hardware.os, "sysconf", lambda name: (_ for _ in ()).throw(ValueError(name)), raising=False)
    assert memory_available() is None


def test_the_memory_of_this_machine():
    free = memory_available()
    assert free is None or free > 10_000_000


def test_memory_is_what_a_container_leaves(machine):
    machine(**{"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": 4 * GIB, "sys/fs/cgroup/memory.current": GIB})
    assert memory_available() == 3 * GIB
    machine(**{"sys/fs/cgroup/memory.stat": f"anon 5\ninactive_file {GIB // 2}"})  # cached, and given up at once
    assert memory_available() == 3 * GIB + GIB // 2
    machine(**{"sys/fs/cgroup/memory.max": "max"})
    assert memory_available() == 8 * GIB


def test_memory_is_what_a_group_around_a_job_leaves(machine):
    job, around = "sys/fs/cgroup/batch/job7", "sys/fs/cgroup/batch"
    machine(**{"proc/self/cgroup": "0::/batch/job7", f"{job}/memory.max": "max", f"{job}/memory.current": GIB})
    machine(**{f"{around}/memory.max": 3 * GIB, f"{around}/memory.current": 2 * GIB})
    assert memory_available() == GIB
    machine(**{f"{around}/memory.current": 4 * GIB})  # over its limit: nothing is left, and no less than nothing
    assert memory_available() == 0


def test_memory_is_what_control_groups_of_the_first_generation_leave(machine):
    machine(**{"proc/self/cgroup": "5:cpu,cpuacct:/\n4:memory:/docker/abc\n0::/"})  # in the container, abc is the root
    machine(**{"sys/fs/cgroup/memory/memory.limit_in_bytes": 2 * GIB, "sys/fs/cgroup/memory/memory.stat": "total_x 1"})
    machine(**{"sys/fs/cgroup/memory/memory.usage_in_bytes": GIB})
    assert memory_available() == GIB
    machine(**{"sys/fs/cgroup/memory/memory.limit_in_bytes": 2**63 - 4096})  # how the first generation says no limit
    assert memory_available() == 8 * GIB


@pytest.mark.parametrize("broken", ["", "nonsense", "0::", "4:memory"])
def test_control_groups_that_cannot_be_read_say_nothing(machine, broken):
    machine(**{"proc/self/cgroup": broken, "sys/fs/cgroup/memory.max": "much", "sys/fs/cgroup/memory.current": "x"})
    assert memory_available() == 8 * GIB


def test_memory_is_what_ulimit_leaves(machine, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (GIB, GIB) if kind == resource.RLIMIT_AS else (0, 0))
    assert memory_available() == GIB - 1000 * resource.getpagesize()


def test_memory_of_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 70)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (100, 999))
    assert memory_available(torch.device("cuda")) == 120
