"""Distribution names of libraries, and the commands that install them."""

from __future__ import annotations

import sys

_OTHER_NAMES = {
    "agents": "openai-agents",
    "attr": "attrs",
    "Bio": "biopython",
    "bs4": "beautifulsoup4",
    "bson": "pymongo",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "distutils": "setuptools",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "faiss": "faiss-cpu",
    "fitz": "pymupdf",
    "git": "gitpython",
    "github": "pygithub",
    "gitlab": "python-gitlab",
    "googleapiclient": "google-api-python-client",
    "grpc": "grpcio",
    "haystack": "haystack-ai",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "kafka": "kafka-python",
    "ldap": "python-ldap",
    "magic": "python-magic",
    "mem0": "mem0ai",
    "MySQLdb": "mysqlclient",
    "nacl": "pynacl",
    "newspaper": "newspaper3k",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "pipecat": "pipecat-ai",
    "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "pysocks",
    "strands": "strands-agents",
    "strands_tools": "strands-agents-tools",
    "tavily": "tavily-python",
    "telegram": "python-telegram-bot",
    "usb": "pyusb",
    "websocket": "websocket-client",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
"""Import name → distribution name, where they differ."""

_REMOVED = {
    **dict.fromkeys(("asynchat", "asyncore", "imp", "smtpd"), "3.12"),
    **dict.fromkeys(
        (
            *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis"),
            *("nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib"),
        ),
        "3.13",
    ),
}
"""Module that Python once had → version without it."""

SHARED = frozenset({"azure", "google"})
"""Import names to which many distributions contribute modules."""


def installed_as(library: str) -> tuple[str, ...]:
    """Return the probable distribution names of a library, its import name first.

    Args:
        library: Import name, possibly dotted.
    """
    top = library.partition(".")[0]
    return tuple(dict.fromkeys((top, _OTHER_NAMES.get(top, top))))


def advice_on_module(library: str, min_version: str | None = None) -> str:
    """Return a sentence, without its period, on a module of Python itself; empty for libraries.

    An installer has other projects under such names, if any.

    Args:
        library: Import name, possibly dotted.
        min_version: Lowest version that works, if any.
    """
    top = library.partition(".")[0]
    if top not in sys.stdlib_module_names:
        removed = _REMOVED.get(top)
        return (
            f"Python {removed} removed this module. Use a library in its place, or an older Python" if removed else ""
        )
    if min_version is not None:
        return "This module of Python has no version of its own. Remove `min_version` from the requirement"
    return "It is a module of Python that this build lacks. Use a Python that has it"


def install_command(library: str, min_version: str | None = None) -> str:
    """Return the command that installs a library for the running Python interpreter.

    Args:
        library: Import name. The dots of an unknown dotted name become hyphens.
        min_version: Lowest version that works; without it, pip keeps any installed version.
    """
    import shlex

    name = _OTHER_NAMES.get(library.partition(".")[0], library.replace(".", "-"))
    wanted = name if min_version is None else shlex.quote(f"{name}>={min_version}")
    # Without -P, a pip.py of the working directory would run.
    command = _other_installer() or f"{shlex.quote(sys.executable)} -P -m pip install"
    return f"{command} {wanted}"


def extra_command(extra: str) -> str:
    """Return the command that installs an extra of Pegboard, such as `web`."""
    return f"{_other_installer() or 'pip install'} 'pegboard[{extra}]'"


def _other_installer() -> str:
    """Return the command that installs into an environment of pipx or uv, which has no pip; empty for others."""
    import os
    import shlex
    from importlib.util import find_spec

    if os.path.isfile(os.path.join(sys.prefix, "pipx_metadata.json")):  # noqa: PTH113, PTH118 - as in the worker
        return f"pipx inject {shlex.quote(os.path.basename(sys.prefix))}"  # noqa: PTH119
    return f"uv pip install --python {shlex.quote(sys.executable)}" if find_spec("pip") is None else ""
