"""The server beside its own engine: the same requests over HTTP by many clients, and by `lm` in one thread.

    PYTHONPATH=src python3 benchmarks/serving.py --clients 200 --seconds 60
    PYTHONPATH=src python3 benchmarks/serving.py --clients 40 --seconds 10 --overload 4

Requests are mixed: scores of one text by `pll` and `chain`, joints over candidates, short samples. The server is a
process of its own, on loopback. What counts is work per second of its CPU: clients, which run here, are not paid for.
The engine runs the same requests, as many as the server answered, in one process, all scores of a kind in one call.
`--overload 4` sets the queue to a quarter of what the clients ask at a time: only 200 and 429 may come, and memory must
not grow: it is looked at every second, and the most of each quarter of the time is told. `normal_after_seconds` is how
long after the clients have ceased to ask the last of them is answered, and one who comes then is.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import httpx

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the server has it: the engine is not paid for spinning either

ROOT = Path(__file__).parent.parent
SENTENCES = (ROOT / "examples" / "sentences.txt").read_text(encoding="utf-8").splitlines()
PLACES = ["The [MASK] [MASK] very tired.", "She put the [MASK] on the [MASK].", "They [MASK] to the [MASK] every day."]


def mixture(number: int) -> tuple[str, dict[str, Any]]:
    """Request number so and so: eight scores, a joint, a sample out of ten."""
    chance = random.Random(number)
    kind = number % 10
    if kind == 8:
        return "/joint", {"text": chance.choice(PLACES), "candidates": 10}
    if kind == 9:
        return "/sample", {"text": chance.choice(PLACES), "kernel": "ordered", "chains": 2, "seed": number}
    text = f"{number}: {chance.choice(SENTENCES)}"  # no two are the same, or the engine would run them once
    return "/score", {"texts": text, "method": ["pll", "chain"][kind % 2]}


def weigh(route: str, body: dict[str, Any]) -> int:
    """What the server will take it for."""
    from besag.service import weighing

    if route == "/joint":
        return weighing.joint(body["text"], 2, body["candidates"])
    if route == "/sample":
        return weighing.sample(body["text"], None, body["chains"], None)
    return weighing.scores([weighing.tokens(body["texts"])], body["method"], {})


class Server:
    """A process, its CPU seconds and its memory."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-m", "besag", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(command, text=True, stderr=subprocess.PIPE, env=environment)
        assert self.process.stderr
        self.address = next(line for line in self.process.stderr if line.startswith("serving")).split()[-1]
        self.log = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """MiB."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(found[1]) >> 10 if found else 0

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()  # where a measurement failed

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self.log.wait(5)
        return code


class Load(NamedTuple):
    statuses: Counter[int]
    answered: list[int]  # which requests, with 200
    took: list[float]  # seconds of each of these
    memory: list[int]  # MiB of the server, every second
    over: float  # seconds that the last answers took, when nobody asked any more


async def load(server: Server, clients: int, seconds: float, first: int = 0) -> Load:
    """Clients that ask one request after the other, numbered from `first` on."""
    statuses: Counter[int] = Counter()
    answered: list[int] = []
    took: list[float] = []
    memory: list[int] = []
    numbers, end = itertools.count(first), time.monotonic() + seconds

    async def looked_at() -> None:
        while time.monotonic() < end:
            memory.append(server.memory)
            await asyncio.sleep(1)

    async def client(line: httpx.AsyncClient) -> None:
        while time.monotonic() < end:
            number = next(numbers)
            route, body = mixture(number)
            began = time.monotonic()
            answer = await line.post(route, json=body)
            statuses[answer.status_code] += 1
            if answer.status_code == 200:
                answered.append(number)
                took.append(time.monotonic() - began)
            else:
                await asyncio.sleep(0.2)

    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=server.address, timeout=3600, limits=limits) as line:
        await asyncio.gather(looked_at(), *(client(line) for _ in range(clients)))
    return Load(statuses, answered, took, [*memory, server.memory], max(0.0, time.monotonic() - end))


def quarters(values: list[int]) -> list[int]:
    """The most in each quarter of the time."""
    cuts = [len(values) * part // 4 for part in range(5)]
    return [max(values[start:stop], default=0) for start, stop in itertools.pairwise(cuts)]


def engine(numbers: list[int]) -> float:
    """CPU seconds of the same requests by `lm` alone."""
    import besag

    lm = besag.load(progress=False, device="cpu")
    lm.score("To begin with.")
    asked = [mixture(number) for number in numbers]
    before = resource.getrusage(resource.RUSAGE_SELF)
    for method in ("pll", "chain"):
        lm.score([body["texts"] for route, body in asked if route == "/score" and body["method"] == method], method)
    for route, body in asked:
        if route == "/joint":
            lm.joint(body["text"], candidates=body["candidates"]).to_dict()
        elif route == "/sample":
            lm.sample(body["text"], body["kernel"], chains=body["chains"], seed=body["seed"]).to_dict()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--overload", type=float, default=0.0, help="clients ask for so many times the queue")
    parser.add_argument("--output", help="a JSON file for the figures")
    given = parser.parse_args()
    weights = [weigh(*mixture(number)) for number in range(500)]
    queue = int(given.clients * sum(weights) / len(weights) / given.overload) if given.overload else 2**20
    queue = max(queue, *weights)  # else some could never be taken: 413
    with Server("--device", "cpu", "--queue-tokens", str(queue), "--deadline", "3600") as server:
        asyncio.run(load(server, 4, 2, first=10**8))  # to begin with
        cpu, memory = server.cpu, server.memory
        busy = asyncio.run(load(server, given.clients, given.seconds))
        spent = server.cpu - cpu
        after = asyncio.run(load(server, 1, 1, first=2 * 10**8))
        answered, took = busy.answered, sorted(busy.took)
        found = {
            "clients": given.clients,
            "seconds": given.seconds,
            "queue_tokens": queue,
            "statuses": {str(status): count for status, count in sorted(busy.statuses.items())},
            "requests_per_second": len(answered) / given.seconds,
            "requests_per_cpu_second": len(answered) / spent,
            "median_seconds": took[len(took) // 2],
            "p99_seconds": took[int(len(took) * 0.99)],
            "memory_mib": {"before": memory, "most_in_each_quarter": quarters(busy.memory), "after": server.memory},
            "after": {"statuses": dict(after.statuses), "median_seconds": sorted(after.took)[len(after.took) // 2]},
            "normal_after_seconds": busy.over + after.took[0],
            "exit_code": server.stop(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        }
    found["engine_requests_per_cpu_second"] = len(answered) / engine(answered)
    found["share_of_the_engine"] = found["requests_per_cpu_second"] / found["engine_requests_per_cpu_second"]
    print(json.dumps(found, indent=2))
    if given.output:
        Path(given.output).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
