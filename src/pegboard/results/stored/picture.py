"""Decoding of untrusted images. Runs only in a process of its own."""

from __future__ import annotations

import io
import warnings

_MOST_PIXELS = 40_000_000
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")


def thumbnail(data: bytes, width: int, height: int) -> tuple[dict[str, object], bytes]:
    """Return an image as RGBA pixels within a size in pixels, and its properties.

    Args:
        data: The encoded image.
        width: Maximum width.
        height: Maximum height.

    Raises:
        ValueError: The data is not an image of a supported format, is damaged, or has too many pixels.
    """
    from PIL import Image, ImageFile, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    # Open a PNG with a wrong checksum in an optional part, such as its color profile, as browsers do.
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            ImageFile.LOAD_TRUNCATED_IMAGES = False
            properties = {"format": image.format, "width": image.width, "height": image.height}
            if image.width * image.height > _MOST_PIXELS:
                raise ValueError(f"The image has {image.width:,} × {image.height:,} pixels, which is too many.")
            image.draft("RGB", (width, height))
            image.thumbnail((width, height))
            small = image.convert("RGBA")
    except UnidentifiedImageError:
        raise ValueError("The data is not an image of a known type (PNG, JPEG, GIF, WebP or BMP).") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(f"The image has more than {_MOST_PIXELS:,} pixels.") from None
    except (OSError, SyntaxError, EOFError, IndexError, TypeError, KeyError) as error:
        raise ValueError(f"The image is damaged: {error}") from None
    return {**properties, "shown_width": small.width, "shown_height": small.height}, small.tobytes()
