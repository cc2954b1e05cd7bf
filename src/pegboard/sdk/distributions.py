"""How libraries are installed."""

from __future__ import annotations

import sys

_OTHER_NAMES = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "git": "gitpython",
    "PIL": "pillow",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Libraries that are installed by another name than they are imported by."""


def installed_as(library: str) -> tuple[str, ...]:
    """Gives the names by which a library is probably installed, its own first.

    Args:
        library: What is imported.
    """
    top = library.partition(".")[0]
    return tuple(dict.fromkeys((top, _OTHER_NAMES.get(top, top))))


def install_command(library: str) -> str:
    """Gives the command that installs a library for the Python that runs here.

    Args:
        library: What is imported; of a dotted name the whole is taken for the name of what is installed.
    """
    name = _OTHER_NAMES.get(library.partition(".")[0], library.replace(".", "-"))
    return f"{sys.executable} -m pip install {name}"
