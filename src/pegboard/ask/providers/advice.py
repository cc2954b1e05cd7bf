"""Advice on failures that a certain server reports in words of its own."""

from __future__ import annotations

import re
from typing import Final

from pegboard.ask.providers.endpoint import Endpoint

_ADVICE: Final = tuple(
    (re.compile(words, re.IGNORECASE), fix)
    for words, fix in (
        # vLLM
        (
            r"--tool-call-parser",
            "Start the server with --enable-auto-tool-choice and --tool-call-parser, or ask without tools.",
        ),
        # llama.cpp
        (r"--jinja", "Start the server with --jinja, or ask without tools."),
        (r"^loading model", "Wait until the server has loaded the model, then try again."),
        (
            r"JSON schema conversion failed|failed to parse grammar",
            "Don't offer the model the tool that the server can't read, or ask without tools.",
        ),
        # LM Studio and Ollama
        (
            r"\bfailed to load model\b|\brequires more system memory\b",
            "Use a smaller model, or check the server's log.",
        ),
        # Ollama, Groq and Google
        (
            (
                r"error parsing tool call|failed to call a function|tool call validation failed"
                r"|^\w+_(FUNCTION|TOOL)_CALL\b"
            ),
            "Try again, or use another model: this one wrote an invalid call.",
        ),
        # OpenRouter
        (r"\bdata policy\b", "Allow its providers in the privacy settings of your account, or use another model."),
        # templates of models such as Gemma
        (r"system role not supported", "Empty the system prompt of the session, or use another model."),
        # servers built with FastAPI, and old ones
        (
            r"\btools: extra (fields|inputs)|\b(unknown|unsupported) (field|parameter|argument)\W{1,3}tools\b",
            "Ask without tools, or update the server: it doesn't accept tools.",
        ),
    )
)
_UNLOADED: Final = re.compile(r"\bno models?( is| are)?( currently)? loaded\b|\bmodel( is)? unloaded\b", re.IGNORECASE)


def advice(detail: str, at: Endpoint) -> str:
    """Return what to do about a failure whose cause only the server's own words reveal, or an empty text.

    Args:
        detail: The words.
        at: The model.
    """
    if _UNLOADED.search(detail):
        command = f" with `lms load {at.model}`" if at.provider == "lmstudio" else " in the server"
        return f"Load the model{command}, then try again."
    return next((fix for words, fix in _ADVICE if words.search(detail)), "")
