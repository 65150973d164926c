"""Profiles: `make test` runs each property a little, `make soak` a lot."""

import os

from hypothesis import HealthCheck, settings

_COMMON = {
    "deadline": None,  # speed lives in bench/, never in a test
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    "print_blob": True,
}
settings.register_profile("default", max_examples=100, **_COMMON)
settings.register_profile("soak", max_examples=3000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
