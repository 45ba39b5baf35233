"""Tests that something absent keeps from running say so, and fail where everything must run (`TENSILO_REQUIRE`)."""

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

REQUIRED = bool(os.environ.get("TENSILO_REQUIRE"))


def _judge(report: Any) -> Any:
    if REQUIRED and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: skipped where everything must run: {report.longrepr[2]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """A skipped test fails where everything must run."""
    return _judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """So does a file of tests."""
    return _judge((yield))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was not run, as the tests in Rust do. A file that was skipped counts as one."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ").removeprefix("needs ") for report in reports)
    for reason, n in reasons.items():
        terminalreporter.write_line(f"skipped: needs {reason} ({n} {'test' if n == 1 else 'tests'})")
