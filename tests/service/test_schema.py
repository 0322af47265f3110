"""Whatever fits the OpenAPI schema, and whatever nearly does, is no fault of the server: cases by schemathesis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.service.serving import desk, served

from besag.service.app import create
from besag.service.desk import Limits

requests = pytest.importorskip("requests", reason="requests is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

KNOWN = {200, 400, 404, 405, 413, 422}
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [*HealthCheck],
    "database": None,
}


@cache
def told() -> Any:
    return schemathesis.openapi.from_dict(create(desk()).openapi())


cases = st.deferred(
    lambda: st.one_of([told().as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode])
)


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, Any]]:
    with served(desk(queue_tokens=4000, limits=Limits(seconds=60))) as address, requests.Session() as session:
        yield address, session


def check(case: Any, server: tuple[str, Any]) -> None:
    address, session = server
    answer = case.call(base_url=address, session=session, timeout=60)
    assert answer.status_code in KNOWN, (case, answer.status_code, answer.content)


@settings(max_examples=250, **SETTINGS)
@given(cases)
def test_no_case_of_the_schema_is_a_fault(server, case):
    check(case, server)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=5000, **SETTINGS)
@given(cases)
def test_no_case_of_thousands_is_a_fault(server, case):
    check(case, server)
