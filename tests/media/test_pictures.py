import io
from typing import Any

import pytest
from PIL import Image

from media.samples import bomb, decoded, described, encoded, image, noise, turned
from spec.marks import requirement
from surehold.errors import ImageInvalid, ImageTooLarge
from surehold.media.magic import kind_of
from surehold.media.pictures import Picture, PictureSize, decode_picture, decode_preview


def shown(data: bytes) -> Picture:
    kind = kind_of(data)
    assert kind is not None
    return decode_picture(data, kind, path="a.png")


@requirement("claude:read:image")
@pytest.mark.parametrize("name", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_small_image_of_a_common_kind_is_handed_on_as_it_is(name: str) -> None:
    data = image(name)

    found = shown(data)

    assert (found.data, found.mime) == (data, f"image/{name.lower()}")
    assert (found.original, found.display, found.frames) == (
        PictureSize(width=40, height=30),
        PictureSize(width=40, height=30),
        1,
    )


@pytest.mark.parametrize("name", ["BMP", "TIFF", "ICO", "AVIF"])
def test_an_image_of_another_kind_becomes_one_that_every_host_shows(name: str) -> None:
    found = shown(image(name, (32, 32), "blue"))

    picture = decoded(found.data)
    assert (found.mime, picture.format, picture.size) == ("image/png", "PNG", (32, 32))
    assert _near(picture.convert("RGB").getpixel((5, 5)), (0, 0, 255))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(image()[:-12], id="without its end"),
        pytest.param(image()[:-16] + b"\0\0\0\0" + image()[-12:], id="with a wrong checksum"),
        pytest.param(image(pnginfo=described("zTXt", 3 << 20)), id="with a very long packed text"),
        pytest.param(image("JPEG", icc_profile=bytes(2 << 20)), id="with a very large profile"),
    ],
)
def test_what_stricter_decoders_refuse_is_encoded_anew(data: bytes) -> None:
    found = shown(data)

    assert found.data != data
    with Image.open(io.BytesIO(found.data)) as strict:
        strict.verify()
    assert _near(decoded(found.data).convert("RGB").getpixel((5, 5)), (255, 0, 0))
    assert len(found.data) < 10_000


@requirement("claude:read:image_limits")
@pytest.mark.parametrize(
    ("size", "display"),
    [((2000, 10), (2000, 10)), ((2001, 10), (1568, 8)), ((8001, 100), (1568, 20)), ((3, 9000), (1, 1568))],
)
def test_a_side_above_2000_pixels_is_shrunk_and_both_sizes_are_told(
    size: tuple[int, int], display: tuple[int, int]
) -> None:
    found = shown(image("PNG", size))

    assert (found.original.width, found.original.height) == size
    assert (found.display.width, found.display.height) == display
    assert decoded(found.data).size == display


@requirement("claude:read:image_limits")
def test_many_bytes_become_a_jpeg_that_fits() -> None:
    data = encoded(noise((1900, 1400)), "PNG")
    assert len(data) > 3_932_160

    found = shown(data)

    assert (found.mime, decoded(found.data).size) == ("image/jpeg", (1900, 1400))
    assert len(found.data) <= 3_932_160


@requirement("claude:read:image_limits")
@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("name", ["JPEG", "TIFF"])
def test_what_the_camera_turned_is_turned_back(name: str, orientation: int) -> None:
    black = {1: (2, 15), 2: (37, 15), 3: (37, 15), 4: (2, 15), 5: (15, 2), 6: (15, 2), 7: (15, 37), 8: (15, 37)}
    lies = orientation >= 5

    found = shown(turned(orientation, name))

    upright = PictureSize(width=30, height=40) if lies else PictureSize(width=40, height=30)
    assert (found.original, found.display, found.orientation) == (upright, upright, orientation)
    picture = decoded(found.data).convert("L")
    assert picture.size == (upright.width, upright.height)
    assert _grey(picture, black[orientation]) < 40
    other = (upright.width - 1 - black[orientation][0], upright.height - 1 - black[orientation][1])
    assert _grey(picture, other if not lies else (15, other[1])) > 200


def test_print_colours_become_screen_colours() -> None:
    found = shown(encoded(Image.new("RGB", (40, 30), "red").convert("CMYK"), "JPEG"))

    assert (found.mode, found.mime, decoded(found.data).mode) == ("CMYK", "image/jpeg", "RGB")
    assert _near(decoded(found.data).getpixel((5, 5)), (255, 0, 0))


@pytest.mark.parametrize(("deep", "grey"), [(0, 0), (32768, 127), (65535, 255)])
def test_deep_greys_keep_their_brightness(deep: int, grey: int) -> None:
    found = shown(image("PNG", colour=deep, mode="I;16"))

    assert abs(_grey(decoded(found.data), (1, 1)) - grey) <= 1


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_shown_and_all_are_counted(name: str) -> None:
    frames = [Image.new("RGB", (40, 30), colour) for colour in ("red", "lime", "blue")]

    found = shown(encoded(frames[0], name, save_all=True, append_images=frames[1:]))

    assert (found.frames, found.mime) == (3, "image/png")
    assert getattr(decoded(found.data), "n_frames", 1) == 1
    assert _near(decoded(found.data).convert("RGB").getpixel((1, 1)), (255, 0, 0))


def test_transparency_survives_in_a_small_image_and_is_white_in_a_large_one() -> None:
    small = shown(image("TIFF", colour=(255, 0, 0, 0), mode="RGBA"))
    see_through = noise((2100, 1500)).convert("RGBA")
    see_through.paste((0, 0, 0, 0), (0, 0, 300, 300))
    large = shown(encoded(see_through, "PNG"))

    assert (small.mime, decoded(small.data).getpixel((1, 1))) == ("image/png", (255, 0, 0, 0))
    assert large.mime == "image/jpeg"
    assert _near(decoded(large.data).getpixel((20, 20)), (255, 255, 255))


def test_a_palette_is_resolved_before_an_image_is_shrunk() -> None:
    found = shown(encoded(Image.new("RGB", (2400, 40), "lime").quantize(4), "PNG"))

    assert _near(decoded(found.data).convert("RGB").getpixel((9, 9)), (0, 255, 0))


@requirement("claude:read:image_limits")
def test_an_image_that_would_be_too_large_is_refused_before_it_is_decoded() -> None:
    data = bomb(24_500)
    assert len(data) < 700_000

    with pytest.raises(ImageTooLarge) as refused:
        shown(data)

    assert refused.value.details == {"cause": "it has 24500 x 24500 pixels"}


@requirement("claude:read:image_limits")
@pytest.mark.parametrize(
    "data",
    [
        encoded(noise((300, 300)), "JPEG")[:-2000],
        encoded(noise((300, 300)), "PNG")[:-2000],
        encoded(noise((60, 60)), "WEBP")[:-900],
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff" + bytes(500),
        b"GIF89a\xff\xff\xff\xff\x00\x00\x00",
        image("BMP")[:60],
    ],
    ids=["jpeg", "png", "webp", "png head", "jpeg zeros", "gif head", "bmp head"],
)
def test_a_damaged_image_is_refused_and_never_handed_on(data: bytes) -> None:
    with pytest.raises(ImageInvalid) as refused:
        shown(data)

    assert (refused.value.path, refused.value.reason) == ("a.png", "undecodable")
    assert refused.value.details["cause"]


def test_an_iphone_photo_without_the_plugin_says_what_to_do() -> None:
    with pytest.raises(ImageInvalid) as refused:
        shown(b"\0\0\0\x18ftypheic" + bytes(200))

    assert (refused.value.reason, refused.value.action) == ("unsupported", "Convert it to PNG or JPEG, and read that.")
    assert "pillow-heif" in refused.value.details["cause"]


def test_a_preview_has_an_even_number_of_rows_and_three_bytes_a_place() -> None:
    data = turned(6)
    kind = kind_of(data)
    assert kind is not None

    found = decode_preview(data, kind, path="a.jpg", columns=12)

    assert (found.columns, found.rows, len(found.colours)) == (12, 16, 12 * 16 * 3)


def test_a_preview_of_a_very_narrow_image_is_no_longer_than_a_screen() -> None:
    data = image("PNG", (1, 5_000))
    kind = kind_of(data)
    assert kind is not None

    found = decode_preview(data, kind, path="a.png", columns=1, rows=48)

    assert (found.columns, found.rows, len(found.colours)) == (1, 48, 48 * 3)


def _near(pixel: Any, colour: tuple[int, ...]) -> bool:
    return all(abs(one - other) <= 12 for one, other in zip(pixel, colour, strict=True))


def _grey(picture: Image.Image, at: tuple[int, int]) -> int:
    value: Any = picture.getpixel(at)
    return int(value)
