"""Profiles: `make test` runs each property a little, `make soak` a lot."""

import itertools
import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

_PLAIN = settings(
    deadline=None,  # speed lives in bench/, never in a test
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    print_blob=True,
)
settings.register_profile("default", settings(_PLAIN, max_examples=100))
settings.register_profile("soak", settings(_PLAIN, max_examples=3000))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def count(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Let a test say how many of something it did; the sums stand at the end of the report."""
    return lambda name, number: request.node.user_properties.append((name, number))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what tests counted: runs, edits, violations."""
    totals = Counter[str]()
    for report in itertools.chain(terminalreporter.stats.get("passed", ()), terminalreporter.stats.get("failed", ())):
        if getattr(report, "when", "") == "call":
            totals.update({name: value for name, value in report.user_properties if isinstance(value, int)})
    if totals:
        terminalreporter.write_sep("-", ", ".join(f"{name}: {count:,}" for name, count in sorted(totals.items())))
