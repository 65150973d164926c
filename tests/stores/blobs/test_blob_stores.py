"""A directory and object storage as the place of large versions: the same promises, and the same words when they fail."""

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from doubles.object_service import ObjectService
from spec.marks import requirement
from stores.scenes import sha
from surehold.errors import BlobsUnavailable, InvalidArgument, StateCorrupt, Unavailable
from surehold.stores.blobs.base import GRACE, BlobStore, StoredObject, sha256_of_name
from surehold.stores.blobs.directory import DirectoryBlobs
from surehold.stores.blobs.large_versions import LargeVersions, open_blobs
from surehold.stores.blobs.object_cache import ObjectCache
from surehold.stores.blobs.s3 import S3Blobs
from waiting import wait_until

NOISE = random.Random(2).randbytes(150_000)
TEXT = b"a line of text\n" * 20_000


@pytest.fixture(params=["directory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, service: ObjectService) -> BlobStore:
    if request.param == "directory":
        return DirectoryBlobs(tmp_path / "blobs", folder="one")
    return S3Blobs("s3://bucket/some/prefix", folder="one")


@pytest.fixture
def damage(blobs: BlobStore, tmp_path: Path, service: ObjectService) -> Callable[[str, bytes | None], None]:
    """Replace the bytes of an object, or remove it, without the store."""

    def replace_bytes(name: str, data: bytes | None) -> None:
        if isinstance(blobs, DirectoryBlobs):
            path = tmp_path / "blobs" / "one" / name
            path.write_bytes(data) if data is not None else path.unlink()
        elif data is None:
            del service.objects[f"/bucket/some/prefix/one/{name}"]
        else:
            service.objects[f"/bucket/some/prefix/one/{name}"] = (data, datetime.now(UTC))

    return replace_bytes


@requirement("fleet:blobs:immutable")
@pytest.mark.parametrize("data", [b"", TEXT, NOISE], ids=["empty", "text", "noise"])
def test_bytes_come_back_under_the_name_that_put_gave_them(blobs: BlobStore, data: bytes) -> None:
    name = blobs.put(sha(data), data)

    assert sha256_of_name(name) == sha(data)
    assert blobs.get(name, size=len(data)) == data
    assert blobs.has(name)
    assert [one.name for one in blobs.list_objects()] == [name]


@requirement("fleet:blobs:immutable")
def test_the_same_bytes_get_a_new_name_each_time_so_that_no_object_is_overwritten(blobs: BlobStore) -> None:
    names = {blobs.put(sha(TEXT), TEXT) for _ in range(3)}

    assert len(names) == 3
    assert {one.name for one in blobs.list_objects()} == names
    assert {blobs.get(name, size=len(TEXT)) for name in names} == {TEXT}


def test_what_is_deleted_is_gone_and_may_be_deleted_again(blobs: BlobStore) -> None:
    first, second = blobs.put(sha(TEXT), TEXT), blobs.put(sha(NOISE), NOISE)

    blobs.delete([first])
    blobs.delete([first])

    assert not blobs.has(first)
    assert [one.name for one in blobs.list_objects()] == [second]


@requirement("fleet:blobs:checked")
@pytest.mark.parametrize("kind", ["other bytes", "not packed", "missing", "larger"])
def test_what_is_not_what_its_name_says_is_never_returned(
    blobs: BlobStore, damage: Callable[[str, bytes | None], None], kind: str
) -> None:
    import zstandard

    name = blobs.put(sha(TEXT), TEXT)
    pack = zstandard.ZstdCompressor().compress
    wrong = {"other bytes": pack(TEXT[::-1]), "not packed": TEXT, "missing": None, "larger": pack(TEXT * 2)}
    damage(name, wrong[kind])

    with pytest.raises(StateCorrupt) as caught:
        blobs.get(name, size=len(TEXT))

    assert blobs.address in caught.value.message
    assert sha(TEXT) in caught.value.message


def test_histories_that_share_a_place_do_not_see_each_other(tmp_path: Path, service: ObjectService) -> None:
    makers: list[Callable[[str], BlobStore]] = [
        lambda folder: DirectoryBlobs(tmp_path / "blobs", folder=folder),
        lambda folder: S3Blobs("s3://bucket", folder=folder),
    ]
    for make in makers:
        one, other = make("one"), make("other")
        name = one.put(sha(TEXT), TEXT)

        assert list(other.list_objects()) == []
        assert not other.has(name)


@requirement("fleet:blobs:away")
def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    blobs = DirectoryBlobs(tmp_path / "file" / "blobs", folder="one")

    tries: list[Callable[[], object]] = [lambda: blobs.put(sha(TEXT), TEXT), lambda: blobs.get("x/y", size=1)]
    for attempt in (*tries, blobs.probe):
        with pytest.raises(BlobsUnavailable) as caught:
            attempt()
        assert str(tmp_path / "file" / "blobs") in caught.value.message


@requirement("fleet:blobs:away")
@pytest.mark.parametrize("fault", ["failing", "hanging", "away", "no bucket"])
def test_a_service_that_fails_is_named_and_works_again_afterwards(service: ObjectService, fault: str) -> None:
    address, seconds = "s3://missing/x" if fault == "no bucket" else "s3://bucket/x", 0.2 if fault == "hanging" else 60
    blobs = S3Blobs(address, folder="one", request_seconds=seconds)
    name = f"x/{sha(TEXT)}"
    tries: list[Callable[[], object]] = [
        lambda: blobs.put(sha(TEXT), TEXT),
        lambda: blobs.get(name, size=1),
        lambda: list(blobs.list_objects()) if fault != "no bucket" else blobs.probe(),
    ]
    if fault in {"failing", "hanging"}:
        service.behaviour = "failing" if fault == "failing" else "hanging"
    if fault == "away":
        with service.away():
            messages = [_refusal(one) for one in tries]
    else:
        messages = [_refusal(one) for one in tries]
    service.behaviour = "good"
    service.released.set()

    assert all("`s3://" in one for one in messages)
    if fault != "no bucket":
        wait_until(lambda: _is_kept(blobs), "a short patience is kept by a service that has time")


def _is_kept(blobs: S3Blobs) -> bool:
    try:
        return blobs.get(blobs.put(sha(TEXT), TEXT), size=len(TEXT)) == TEXT
    except BlobsUnavailable:
        return False


def _refusal(attempt: Callable[[], object]) -> str:
    with pytest.raises(BlobsUnavailable) as caught:
        attempt()
    assert caught.value.reason == "blobs_away"
    return caught.value.message


@requirement("fleet:blobs:probe")
@pytest.mark.parametrize("lie", ["unconditional", "forgetful"])
def test_a_service_that_lies_about_conditions_is_refused_before_anything_is_stored(
    service: ObjectService, tmp_path: Path, lie: str
) -> None:
    service.behaviour = "unconditional" if lie == "unconditional" else "forgetful"

    with pytest.raises(BlobsUnavailable) as caught:
        open_blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache")

    assert caught.value.reason == "blobs_unsafe"
    assert "`s3://bucket/x` does not keep what it promises" in caught.value.message
    assert "If-None-Match" in caught.value.action
    assert service.count("PUT") == 0  # but for the probe
    service.behaviour = "good"
    assert open_blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache").put(sha(TEXT), TEXT)


@requirement("fleet:blobs:probe")
def test_a_service_is_probed_once_by_all_processes_and_again_when_it_is_another(
    service: ObjectService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        open_blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache")
    probed = [path for _, path in service.requests]

    monkeypatch.setenv("AWS_ENDPOINT_URL", service.endpoint.replace("127.0.0.1", "localhost"))
    open_blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache")

    assert len(probed) == 4  # created, refused, read, removed
    assert len(service.requests) == 8
    assert not service.objects


@requirement("fleet:blobs:probe")
def test_a_service_that_was_away_at_the_start_is_probed_before_the_first_put(
    service: ObjectService, tmp_path: Path
) -> None:
    with service.away():
        blobs = open_blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache")
    service.behaviour = "unconditional"

    with pytest.raises(BlobsUnavailable) as caught:
        blobs.put(sha(TEXT), TEXT)

    assert caught.value.reason == "blobs_unsafe"


@pytest.mark.parametrize(
    "address", ["gs://bucket", "s3://", "s3:///prefix", "s3://bucket?x=1", "s3://a@bucket", "a\0b"]
)
def test_what_is_not_a_place_is_refused(address: str, service: ObjectService) -> None:
    with pytest.raises(InvalidArgument) as caught:
        open_blobs(address, folder="one")

    assert caught.value.reason == "bad_blobs"
    assert "s3://bucket/prefix" in caught.value.action
    assert service.requests == []


def test_object_storage_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", {"obstore": None}.get)

    with pytest.raises(Unavailable) as caught:
        open_blobs("s3://bucket", folder="one")

    assert (caught.value.reason, caught.value.details["extra"]) == ("extra_missing", "s3")


@requirement("fleet:blobs:cache")
def test_what_was_put_or_read_lately_is_not_fetched_and_is_checked_all_the_same(
    service: ObjectService, tmp_path: Path
) -> None:
    def open_again() -> S3Blobs:
        return S3Blobs("s3://bucket/x", folder="one", cache=tmp_path / "cache")

    name = open_again().put(sha(TEXT), TEXT)
    assert open_again().get(name, size=len(TEXT)) == TEXT
    assert service.count("GET") == 0

    (kept,) = (tmp_path / "cache" / "objects").glob("??/*")
    kept.write_bytes(b"damaged")
    assert open_again().get(name, size=len(TEXT)) == TEXT
    assert open_again().get(name, size=len(TEXT)) == TEXT
    assert service.count("GET") == 1
    assert kept.stat().st_mode & 0o777 == 0o600


@requirement("fleet:blobs:cache")
def test_without_a_named_place_the_cache_is_where_the_user_keeps_caches(
    service: ObjectService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    name = open_blobs("s3://bucket/x", folder="one").blobs.put(sha(TEXT), TEXT)

    assert open_blobs("s3://bucket/x", folder="one").blobs.get(name, size=len(TEXT)) == TEXT
    assert service.count("GET") == 0
    assert len([*(tmp_path / "surehold" / "blobs" / "objects").glob("??/*")]) == 1


@requirement("fleet:blobs:cache")
def test_a_cache_that_cannot_be_written_keeps_nothing_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ObjectCache(tmp_path / "file" / "objects", limit=100_000)

    cache.add(sha(TEXT), TEXT)
    cache.drop(sha(TEXT))
    assert cache.find(sha(TEXT)) is None


@requirement("fleet:blobs:cache")
def test_the_cache_keeps_its_bound_and_what_was_used_last(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, limit=100_000)
    for number in range(30):
        cache.add(sha(bytes([number])), bytes(10_000))
        os.utime(tmp_path / sha(bytes([number]))[:2] / sha(bytes([number])), (number, number))
        if number > 2:
            assert cache.find(sha(b"\2")) is not None
    cache.add(sha(b"too large"), bytes(30_000))

    kept = list(tmp_path.glob("??/*"))
    assert sum(path.stat().st_size for path in kept) <= 100_000
    assert cache.find(sha(b"\2")) is not None
    assert cache.find(sha(b"\0")) is None
    assert cache.find(sha(b"too large")) is None


@requirement("fleet:blobs:gc")
def test_only_old_objects_without_a_reference_are_removed(
    blobs: BlobStore, tmp_path: Path, service: ObjectService
) -> None:
    large = LargeVersions(blobs)
    referred, unreferred = blobs.put(sha(TEXT), TEXT), blobs.put(sha(NOISE), NOISE)
    service.make_older(hours=25)
    for path in (tmp_path / "blobs").glob("one/*/*"):
        os.utime(path, (0, 0))
    young = blobs.put(sha(b"young"), b"young")

    assert large.sweep(lambda: {referred}, now=datetime.now(UTC)) == 1

    assert {one.name for one in blobs.list_objects()} == {referred, young}
    assert not blobs.has(unreferred)
    assert large.sweep(lambda: {referred}, now=datetime.now(UTC) + GRACE + timedelta(minutes=1)) == 1
    assert {one.name for one in blobs.list_objects()} == {referred}


@requirement("fleet:blobs:gc")
def test_what_came_to_be_referred_to_during_the_listing_stays(
    blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = blobs.put(sha(TEXT), TEXT)
    referred = set[str]()

    def list_slowly() -> Iterator[StoredObject]:
        yield from [*list_at_once()]
        referred.add(name)  # a begin came right after the listing

    list_at_once = blobs.list_objects
    monkeypatch.setattr(blobs, "list_objects", list_slowly)
    later = datetime.now(UTC) + GRACE + timedelta(hours=1)
    assert LargeVersions(blobs).sweep(lambda: referred, now=later) == 0
    assert blobs.has(name)


@requirement("fleet:blobs:gc")
def test_bytes_that_were_put_too_long_ago_are_put_again_before_they_are_referred_to(
    blobs: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = LargeVersions(blobs)
    put = large.put(sha(TEXT), TEXT)
    assert large.name_for(put, TEXT) == put.name
    assert large.put(sha(TEXT), TEXT) == put

    after = put.at + GRACE.total_seconds() / 2 + 1
    monkeypatch.setattr(time, "time", lambda: after)

    again = large.name_for(put, TEXT)
    assert again != put.name
    assert blobs.get(again, size=len(TEXT)) == TEXT


@requirement("fleet:blobs:once")
def test_threads_that_store_the_same_bytes_put_them_once(service: ObjectService) -> None:
    large = LargeVersions(S3Blobs("s3://bucket/x", folder="one"))
    with ThreadPoolExecutor(8) as pool:
        puts = [pool.submit(large.put, sha(NOISE), NOISE) for _ in range(16)]
        names = {one.result().name for one in puts}

    assert len(names) == 1
    assert service.count("PUT") == 1


@requirement("fleet:blobs:away")
@pytest.mark.parametrize(("size", "seconds"), [(0, 8), (100_000, 8), (3 << 20, 12), (64 << 20, 136)])
def test_a_service_that_hangs_is_given_up_before_a_lease_is_over_unless_the_version_is_large(
    service: ObjectService, monkeypatch: pytest.MonkeyPatch, size: int, seconds: int
) -> None:
    opened = list[float]()
    blobs = S3Blobs("s3://bucket/x", folder="one")
    monkeypatch.setattr(blobs, "_open", opened.append)

    blobs._store_for(size)  # pyright: ignore[reportPrivateUsage] - the time is not waited for
    blobs._store_for(size)  # pyright: ignore[reportPrivateUsage]

    assert service.behaviour == "good"
    assert opened == [seconds]
