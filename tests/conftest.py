"""Profiles: `make test` runs each property a little, `make soak` a lot."""

import os

from hypothesis import HealthCheck, settings

_PLAIN = settings(
    deadline=None,  # speed lives in bench/, never in a test
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
    print_blob=True,
)
settings.register_profile("default", settings(_PLAIN, max_examples=100))
settings.register_profile("soak", settings(_PLAIN, max_examples=3000))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
