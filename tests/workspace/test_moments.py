"""Moments in a person's words."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from surehold.errors import InvalidArgument
from surehold.workspace.past.moments import parse_moment, read_moment

NOW = datetime(2026, 3, 10, 22, 30, 15, tzinfo=UTC)
EAST = timezone(timedelta(hours=2))  # where the next day has begun


@pytest.mark.parametrize(
    ("word", "moment"),
    [
        ("now", NOW),
        (" NOW ", NOW),
        ("today", datetime(2026, 3, 11, tzinfo=EAST)),
        ("yesterday", datetime(2026, 3, 10, tzinfo=EAST)),
        ("2h", NOW - timedelta(hours=2)),
        ("1d2h", NOW - timedelta(days=1, hours=2)),
        ("90s ago", NOW - timedelta(seconds=90)),
        ("3m", NOW - timedelta(minutes=3)),
        ("00:10", datetime(2026, 3, 11, 0, 10, tzinfo=EAST)),
        ("00:10:20", datetime(2026, 3, 11, 0, 10, 20, tzinfo=EAST)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=EAST)),
        ("2026-03-01T10:00", datetime(2026, 3, 1, 10, tzinfo=EAST)),
        ("2026-03-01T10:00+00:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00Z", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_words_name_a_moment_in_the_zone_of_the_person(word: str, moment: datetime) -> None:
    assert read_moment(word, now=NOW, zone=EAST) == moment
    assert parse_moment(word, now=NOW, zone=EAST) == moment.astimezone(UTC).isoformat(timespec="microseconds")


def test_without_a_zone_that_of_the_machine_counts() -> None:
    assert read_moment("2026-03-01T10:00", now=NOW) == datetime(2026, 3, 1, 10).astimezone()
    midnight = NOW.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    assert read_moment("today", now=NOW) == midnight


@pytest.mark.parametrize("word", ["", "soon", "25:00", "2026-13-01", "2", "h", "99999999999d", "10:00:61"])
def test_what_is_no_time_is_refused(word: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_moment(word, now=NOW, zone=EAST)

    assert (refused.value.reason, refused.value.message) == ("bad_time", f"`{word}` is not a time.")


def test_a_moment_to_come_is_refused_where_one_that_has_passed_is_needed() -> None:
    with pytest.raises(InvalidArgument) as refused:
        parse_moment("23:00", now=NOW, zone=EAST)

    assert refused.value.reason == "future_time"
    assert refused.value.message == "`23:00` is in the future: 2026-03-11 23:00:00."
    assert read_moment("23:00", now=NOW, zone=EAST) == datetime(2026, 3, 11, 23, tzinfo=EAST)
