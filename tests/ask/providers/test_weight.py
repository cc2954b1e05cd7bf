"""The cost of importing providers: in a clean interpreter, nothing heavy is loaded early."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"pydantic_ai", "openai", "anthropic", "google.genai", "httpx", "httpx2", "textual", "mcp"}


def loaded_after(code: str) -> set[str]:
    """Return the heavy libraries that are loaded after some code."""
    script = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split()) & HEAVY


def test_naming_a_model_loads_no_library() -> None:
    code = "from pegboard.ask.providers import model, discover\nmodel('anthropic:x', base_url=None, key=lambda _: None)"
    assert loaded_after(code) == set()


def test_preloading_loads_what_the_first_turn_needs_and_no_extra() -> None:
    loaded = loaded_after("from pegboard.ask.providers import preload\npreload()")
    assert {"pydantic_ai", "openai"} <= loaded
    assert not loaded & {"anthropic", "google.genai", "textual", "mcp"}
