"""A steerable run, trained once for all tests of generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training.test_steering import steerable_run


@pytest.fixture(scope="session")
def steerable_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of `steerable_run`; no test writes into it."""
    return steerable_run(tmp_path_factory.mktemp("steerable") / "run")
