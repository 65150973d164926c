"""Moments in a person's words: `2026-11-17T10:00`, `10:00`, `2h`, `yesterday`."""

import re
from datetime import datetime, timedelta, tzinfo

from surehold.errors import InvalidArgument
from surehold.stores.ledger_entries import utc_timestamp

_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_AGE = re.compile(r"(?:\d+(?:min|[smhdw]))+")
_AGE_PART = re.compile(r"(\d+)(min|[smhdw])")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_SPELLINGS = "Say it as 2026-11-17T10:00, 2026-11-17, 10:00 (today), 2h or 30m or 3d (ago), today or yesterday."


def parse_moment(text: str, *, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a moment that has passed, as the ledger spells it; without a zone, that of the machine counts."""
    moment = read_moment(text, now=now, zone=zone)
    if moment > now:
        message = f"`{text[:80]}` is in the future: {moment.astimezone(zone).strftime('%Y-%m-%d %H:%M:%S')}."
        raise InvalidArgument(message, reason="future_time", action="Name a time that has passed.")
    return utc_timestamp(moment)


def read_moment(text: str, *, now: datetime, zone: tzinfo | None = None) -> datetime:
    """Return the moment that words name, also one to come; refuse what is not a time."""
    word = text.strip().lower().removesuffix(" ago").strip()
    try:
        return _read_word(word, text.strip(), now=now, zone=zone)
    except (ValueError, OverflowError):
        raise InvalidArgument(f"`{text[:80]}` is not a time.", reason="bad_time", action=_SPELLINGS) from None


def _read_word(word: str, text: str, *, now: datetime, zone: tzinfo | None) -> datetime:
    local = now.astimezone(zone)
    if word == "now":
        return now
    if word in {"today", "yesterday"}:
        day = local.date() - timedelta(days=word == "yesterday")
        return _localize(datetime(day.year, day.month, day.day), zone)  # noqa: DTZ001 - a zone follows
    if _AGE.fullmatch(word):
        return now - timedelta(seconds=sum(int(n) * _SECONDS[unit] for n, unit in _AGE_PART.findall(word)))
    if clock := _TIME_OF_DAY.fullmatch(word):
        hour, minute, second = (int(part or 0) for part in clock.groups())
        naive = datetime(local.year, local.month, local.day, hour, minute, second)  # noqa: DTZ001 - a zone follows
        return _localize(naive, zone)
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else _localize(moment, zone)


def _localize(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone) if zone else naive.astimezone()
