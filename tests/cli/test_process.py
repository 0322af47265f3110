"""The command as a process of its own: pipes that pause, never end or are closed; Ctrl-C; and how soon help comes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import besag

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


def start(*arguments: object, **streams: Any) -> subprocess.Popen[str]:
    """`besag ARGUMENTS`, its streams on pipes."""
    path = os.pathsep.join([str(Path(besag.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    command = [sys.executable, "-m", "besag", *map(str, arguments)]
    return subprocess.Popen(command, text=True, env=environment, **pipes)


def memory(process: subprocess.Popen[str]) -> int:
    """MiB in use."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) >> 10


@pytest.mark.slow
def test_a_line_is_answered_before_the_next_one_comes_and_ctrl_c_leaves_whole_rows() -> None:
    with start("score", "-", "--method", "pll", "--method", "unmasked") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write("The cats sleep.\n")
        process.stdin.flush()
        assert process.stdout.readline() == "row\ttext\tpll\tunmasked\ttokens\tunknown\tstatus\n"
        assert process.stdout.readline().startswith("1\tThe cats sleep.\t-")  # though stdin is still open
        process.stdin.write("The cat sleeps.\nhalf a li")
        process.stdin.flush()
        assert process.stdout.readline().startswith("2\tThe cat sleeps.\t-")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stdout.read() == ""
        message = "interrupted after 2 rows; go on with --skip 2 (and --output another file)\n"
        assert process.stderr.read() == message


@pytest.mark.slow
def test_ctrl_c_in_the_middle_of_the_work(tmp_path: Path) -> None:
    texts, output = tmp_path / "texts.txt", tmp_path / "out.jsonl"
    texts.write_text("".join(f"There were {number} cats in the old house by the sea.\n" for number in range(20_000)))
    with start("score", texts, "-o", output, "--quiet", "--batch-tokens", "512") as process:
        assert process.stderr
        while not (output.exists() and output.stat().st_size):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        message = process.stderr.read()
    content = output.read_text()
    rows = [json.loads(line) for line in content.splitlines()]
    assert content.endswith("\n")
    assert [row["row"] for row in rows] == list(range(1, len(rows) + 1))
    command = f"besag score {texts} -o {output} --quiet --batch-tokens 512 --resume"
    assert f"interrupted after {len(rows)} rows; go on with {command}\n" in message


@pytest.mark.slow
def test_an_endless_stdin_takes_no_memory_and_a_closed_pipe_is_quiet() -> None:
    with (
        subprocess.Popen(["seq", "100000", "1000000000"], stdout=subprocess.PIPE) as endless,
        start("score", "--method", "unmasked", "--batch-tokens", "64", stdin=endless.stdout) as process,
    ):
        assert endless.stdout
        assert process.stdout
        assert process.stderr
        endless.stdout.close()  # besag has it now
        for _ in range(200):
            process.stdout.readline()
        before = memory(process)
        for _ in range(800):
            process.stdout.readline()
        assert memory(process) < before + 16
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr.read() == ""


@pytest.mark.parametrize("closed", [1, 2])
def test_a_stream_that_was_closed_before_is_no_trouble(closed: int) -> None:
    """`besag … >&-`"""
    process = start("cite", preexec_fn=lambda: os.close(closed))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert "Traceback" not in out + err


def test_the_command_line_itself_imports_nothing_heavy() -> None:
    imported = (
        "import sys, besag.cli; print([name for name in ('torch', 'transformers', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", imported], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def modules_after(program: str, *arguments: str) -> set[str]:
    """What is imported in a process of its own when a program has run."""
    tail = "\nimport sys; print(*sys.modules, file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", program + tail, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


@pytest.mark.parametrize(
    "command",
    [["--help"], ["--version"], ["cite"], ["cite", "besag1975"], ["models"], ["score", "--help"]],
    ids=" ".join,
)
def test_what_prints_text_does_not_wait_for_torch(command: list[str]) -> None:
    run = "import besag.cli\ntry: besag.cli.main()\nexcept SystemExit as done: assert not done.code, done.code"
    assert not modules_after(run, *command) & {"torch", "transformers", "huggingface_hub"}


def test_scoring_does_not_wait_for_the_other_rooms() -> None:
    rooms = {"constraints", "diagnostics", "evaluation", "fills", "samplers", "study", "training"}
    assert not modules_after("import besag; besag.load") & {f"besag.{room}" for room in rooms}


def test_a_score_that_needs_joints_is_known_before_they_are_loaded() -> None:
    with start("cite", "ag_chain") as process:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert "arnold1998" in out
