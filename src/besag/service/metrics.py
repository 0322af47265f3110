"""What a server counts, as Prometheus reads it: requests by route and answer, how long they took, tokens, the queue."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping

EDGES = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.answers: Counter[tuple[str, int]] = Counter()  # by route and status
        self.within: Counter[tuple[str, float]] = Counter()  # by route and edge
        self.seconds: Counter[str] = Counter()

    def add(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self.answers[route, status] += 1
            self.seconds[route] += seconds  # type: ignore[assignment]
            for edge in EDGES:
                self.within[route, edge] += seconds <= edge

    def text(self, gauges: Mapping[str, tuple[str, str, float]]) -> str:
        """`gauges`: name → (kind, what it is, value)."""
        with self._lock:
            lines = ["# HELP besag_requests_total Requests answered.", "# TYPE besag_requests_total counter"]
            for (route, status), count in sorted(self.answers.items()):
                lines.append(f'besag_requests_total{{route="{route}",status="{status}"}} {count}')
            lines += [
                "# HELP besag_request_seconds From the request to the end of its answer.",
                "# TYPE besag_request_seconds histogram",
            ]
            for route in sorted({route for route, _ in self.answers}):
                total = sum(count for (name, _), count in self.answers.items() if name == route)
                for edge in EDGES:
                    count = self.within[route, edge]
                    lines.append(f'besag_request_seconds_bucket{{route="{route}",le="{edge:g}"}} {count}')
                lines.append(f'besag_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
                lines.append(f'besag_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}')
                lines.append(f'besag_request_seconds_count{{route="{route}"}} {total}')
        for name, (kind, what, value) in gauges.items():
            lines += [f"# HELP besag_{name} {what}", f"# TYPE besag_{name} {kind}", f"besag_{name} {value!r}"]
        return "\n".join(lines) + "\n"
