"""The server under Locust, a load tool that is nobody's own: the mixture of `serving.py` by many users.

    pip install locust httpx
    besag serve --port 8000 --device cpu
    locust -f benchmarks/locustfile.py --headless --host http://127.0.0.1:8000 --users 200 --spawn-rate 200 \\
        --run-time 60s --stop-timeout 120s

A 429 is an answer, whose `Retry-After` is kept to. Anything else that is not a 200 is a failure, and so is Locust's
exit code. Figures of CPU and memory are those of `serving.py`, which starts the server itself.
"""

from __future__ import annotations

import itertools
import time

from locust import HttpUser, task

from serving import mixture

numbers = itertools.count()


class Caller(HttpUser):
    """Asks one request after the other."""

    @task
    def ask(self) -> None:
        route, body = mixture(next(numbers))
        with self.client.post(route, json=body, catch_response=True) as answer:
            if answer.status_code == 429:
                answer.success()
        if answer.status_code == 429:
            time.sleep(min(5, int(answer.headers["Retry-After"])))
