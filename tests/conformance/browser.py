"""A browser whose user agrees to everything: visits an address, and follows it to the end."""

from __future__ import annotations

import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=30) as page:
    page.read()
