"""The URL of a PostgreSQL history: several hosts and IPv6 are taken, what cannot be a port is refused."""

import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument
from surehold.stores.postgres.address import parse_address


@requirement("fleet:state:place")
@pytest.mark.parametrize("place", ["db", "db:5433", "[::1]", "[::1]:5433", "one:5432,two:5433", "[::1]:5432,two"])
def test_hosts_and_their_ports_reach_the_database_as_they_are(place: str) -> None:
    assert parse_address(f"postgresql://me@{place}/x").conninfo.startswith(f"postgresql://me@{place}/x?")


@requirement("fleet:state:place")
@pytest.mark.parametrize("place", ["db:0", "db:65536", "db:x", "::1:5432", "one:5432,two:1:2"])
def test_what_cannot_be_a_port_is_refused(place: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_address(f"postgresql://me@{place}/x")
    assert caught.value.reason == "bad_state_url"
