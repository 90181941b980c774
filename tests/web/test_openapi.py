"""The OpenAPI description against the application: every response is a described one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from gazediffusion.web.settings import Limits, Settings
from tests.web.conftest import PATIENCE_S, live_server

# Half of the requests are invalid on purpose; the others must be small to be fast.
LIMITS = Limits(max_windows=6)
PATHS = [
    ("/api/models", "GET"),
    ("/api/generate/stream", "GET"),
    ("/api/generate", "POST"),
    ("/api/jobs/{job}/cancel", "POST"),
    ("/api/real", "GET"),
    ("/health", "GET"),
]
COMPARING = ("/api/evaluate", "/api/evaluate/stream", "/api/report")
STEERING = ("/api/generate/upload", "/api/fill", "/api/label", "/api/augment", "/api/score")
WITH_FILES = [(path, "POST") for path in ("/api/real", *COMPARING, *STEERING)]
ELSEWHERE = [("/api/report/stream", "POST")]  # A report takes long; test_comparison_routes.py.


@pytest.fixture(scope="module")
def schema(run_folder: Path, study: Path) -> Any:
    with live_server(Settings(model=str(run_folder), real=study, limits=LIMITS)) as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize(("path", "method"), PATHS + WITH_FILES, ids=lambda one: str(one))
def test_every_response_is_as_described(schema: Any, path: str, method: str) -> None:
    few = {"/api/evaluate": 3, "/api/score": 3, **dict.fromkeys(COMPARING[1:], 1)}
    n_examples = few.get(path, 8)

    @settings(
        max_examples=n_examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy())
    def check(case: Any) -> None:
        # No schema describes a recording: files of random bytes are refused, as they should be.
        loose = [positive_data_acceptance] if (path, method) in WITH_FILES else []
        case.call_and_validate(excluded_checks=loose, timeout=PATIENCE_S)

    check()


def test_every_path_is_tested(schema: Any) -> None:
    described = {
        (path, method.upper())
        for path in schema
        for method in schema[path]
        if method != "parameters"
    }
    assert described == set(PATHS + WITH_FILES + ELSEWHERE)
