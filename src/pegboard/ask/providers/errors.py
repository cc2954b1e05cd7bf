"""What a provider's failures mean: the libraries' exceptions as sentences for the user, with what to do.

Imported late: it loads the library.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
    UserError,
)

from pegboard.ask.providers.endpoint import Endpoint
from pegboard.ask.providers.limits import TooLargeError
from pegboard.errors import ModelError, ModelErrorCode
from pegboard.results.clean import clean_line

_LONGEST_DETAIL: Final = 500
_WINDOW: Final = 6
"""How many characters of a key, one after the other, give it away."""

_SHORTEST_SECRET: Final = 4
"""Characters of a value in the base URL that is taken for a secret."""

_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|too many (input )?tokens"
    r"|exceeds? .{0,60}\b(context|n_ctx)\b",
    re.IGNORECASE,
)
"""How servers say that a conversation is too long; few have a code for it."""

_OVERLOADED: Final = (503, 529)

_FILTERED: Final = re.compile(r"content.?(filter|policy|management)|moderation|safety system", re.IGNORECASE)

_MASKED: Final = re.compile(r"[^\s*•….]+(?:\*{2,}|•{2,}|…|\.{3,})[^\s*•….]+")
"""A key as providers quote it, most of it hidden."""

_AGAIN: Final = "Ask again."


class Failing:
    """Makes errors for the user out of what went wrong with one model.

    Args:
        endpoint: The model.
        key: The key that was sent; None if there was none. No text of an error holds any of it.
    """

    def __init__(self, endpoint: Endpoint, key: str | None) -> None:
        self._at = endpoint
        self._key = key
        split = urlsplit(endpoint.base_url)
        values = (value for _, value in parse_qsl(split.query))
        others = (split.password or "", unquote(split.password or ""), *values)
        # Shorter ones would hide ordinary words.
        self._secrets = tuple({*([key] if key else []), *(one for one in others if len(one) >= _SHORTEST_SECRET)})

    def of(self, error: Exception, *, started: bool) -> ModelError:
        """Gives the error for an exception of the library's.

        Args:
            error: The exception.
            started: Whether some of the answer had come.
        """
        detail = self._without_key(_said(error))
        return self._by_content(error, detail) or self._by_kind(error, detail, started=started)

    def _by_content(self, error: Exception, detail: str) -> ModelError | None:
        """Return the error for a failure that another fact tells better than its kind."""
        if isinstance(root := _root(error), TooLargeError):
            return self.too_large(str(root))
        return self._too_long(detail) if _is_too_long(error, detail) else None

    def _by_kind(self, error: Exception, detail: str, *, started: bool) -> ModelError:
        match error:
            case ModelRequestTimeout():
                return self._error("timeout", f"{self._title} sent nothing in {error.timeout:g} s.", fix=self._waiting)
            case ModelConnectionError():
                return self._unconnected(error, started=started)
            case ModelQuotaExceededError() | ModelRateLimitError():
                return self._rate_limited(error, detail)
            case ModelAuthenticationError():
                return self._auth(error, detail)
            case ModelNotFoundError():
                return self._unknown_model(error, detail)
            case ModelUnavailableError() | ModelServerError():
                return self._server(error, detail)
            case ModelRequestRejectedError():
                return self._rejected(error, detail)
            case ModelAPIError(in_stream=True):
                return self.own_error(detail)
            case ModelHTTPError():
                return self._rejected(error, detail)
            case ModelAPIError() | UnexpectedModelBehavior():
                return self.nonsense(error) if started else self._no_answer(detail)
            case UserError():
                return self._rejected(error, detail)
            case _:
                return self.nonsense(error)

    def unusable(self, error: Exception) -> ModelError:
        """Return the error for a model that the library refuses to build."""
        message = f"{self._at.name} can't be used"
        return self._error(
            "not_configured", message, "Check the model's name and its base_url.", detail=self._without_key(str(error))
        )

    def too_large(self, detail: str) -> ModelError:
        """Return the error for an answer that exceeded what is read of one."""
        message = f"The answer of {self._title} is too large, and the connection was closed"
        return self._error("broken_stream", message, "Ask again, or use another model.", detail=detail)

    def silence(self, seconds: float) -> ModelError:
        """Gives the error for an answer that stopped coming."""
        message = f"{self._title} fell silent in the middle of its answer: nothing came for {seconds:g} s."
        return self._error("timeout", message, fix=self._waiting)

    def nonsense(self, error: Exception) -> ModelError:
        """Gives the error for a stream that can't be read."""
        message = f"{self._title} sent something that can't be read as an answer."
        return self._error("broken_stream", message, _AGAIN, detail=self._without_key(str(error)))

    def cut_off(self, *, calls: int) -> ModelError:
        """Gives the error for a stream that ended without saying that it was done."""
        left = " The tool call that it was writing was not run." if calls else ""
        message = f"The answer of {self._title} ended before it was done.{left}"
        return self._error("broken_stream", message, _AGAIN)

    def own_error(self, detail: str = "") -> ModelError:
        """Gives the error for a failure that the provider told of in the middle of its answer."""
        message = f"{self._title} broke off its answer with an error."
        return self._error("server", message, _AGAIN, detail=detail)

    def refusal(self, words: object) -> ModelError:
        """Gives the error for a model that won't answer.

        Args:
            words: What it said instead, if anything.
        """
        detail = self._without_key(words) if isinstance(words, str) else ""
        return self._error("refused", f"{self._at.model} won't answer this.", "Say it in another way.", detail=detail)

    @property
    def _title(self) -> str:
        return self._at.title if not self._at.own_url else f"{self._at.title} at {self._at.where}"

    @property
    def _waiting(self) -> str:
        if self._at.is_local:
            return "Look at what the server is doing; a smaller model answers sooner."
        return _AGAIN

    @property
    def _reaching(self) -> str:
        if self._at.is_local and self._at.start:
            return f"Start it with {self._at.start}, or set base_url to where it is."
        return "Check base_url, and that the server runs." if self._at.own_url else "Check the network."

    def _error(
        self,
        code: ModelErrorCode,
        message: str,
        fix: str = "",
        *,
        detail: str = "",
        retry_after: float | None = None,
    ) -> ModelError:
        """Build an error whose message ends with the other side's own words, where there are any."""
        message = message.removesuffix(".")
        said = detail if not detail or detail[-1] in ".!?…" else f"{detail}."
        message = f"{message}: {said}" if said else f"{message}."
        return ModelError(clean_line(message), code=code, fix=clean_line(fix), detail=detail, retry_after=retry_after)

    def _auth(self, error: ModelAuthenticationError, detail: str) -> ModelError:
        secret = self._at.secrets[0]
        put = f"`pegboard auth set {secret}`, or {secret} in the environment"
        # Providers quote the key, most of it hidden.
        detail = _MASKED.sub("[hidden]", detail)
        if self._key is None:
            fix = f"Set it: {put}."
            if self._at.own_url:
                fix += f" If it is set: a key is only sent to the configured server. Set base_url to {self._at.where}."
            return self._error("auth", f"{self._title} requires a key, and none was sent", fix, detail=detail)
        if isinstance(error, ModelHTTPError) and error.status_code == 403:
            message = f"{self._title} doesn't let this key use {self._at.model}"
            return self._error("auth", message, f"Choose another model, or another key: {put}.", detail=detail)
        return self._error(
            "auth", f"{self._title} rejected the key", f"Check {secret}, and set it again: {put}.", detail=detail
        )

    def redirected(self, where: str) -> ModelError:
        """Return the error for a redirect to another server, which wasn't followed."""
        try:
            split = urlsplit(where)
            host = (
                f"{split.scheme}://{split.hostname}{f':{split.port}' if split.port else ''}" if split.hostname else ""
            )
        except ValueError:
            host = ""
        target = clean_line(host) or "another address"
        message = f"{self._title} redirects to {target}, where Pegboard sends neither the key nor the conversation"
        return self._error("bad_request", message, "If you trust that server, set base_url to its address.")

    def _unknown_model(self, error: ModelNotFoundError, detail: str) -> ModelError:
        fixes = []
        if self._at.provider == "ollama":
            fixes.append(f"Fetch it with `ollama pull {self._at.model}`, or choose another model.")
        elif isinstance(error, ModelHTTPError) and error.suggested_model_id:
            fixes.append(f"Did you mean {error.suggested_model_id}?")
        else:
            fixes.append("Check its name.")
        if self._at.own_url:
            fixes.append("Check base_url too: it usually ends in /v1.")
        return self._error(
            "unknown_model", f"{self._title} has no model {self._at.model}.", " ".join(fixes), detail=detail
        )

    def _rate_limited(self, error: ModelAPIError, detail: str) -> ModelError:
        if isinstance(error, ModelQuotaExceededError):
            message = f"The account at {self._title} has nothing left to spend."
            fix = "Look at its plan and its bill, or use another model."
            return self._error("rate_limited", message, fix, detail=detail)
        wait = error.retry_after
        fix = f"Ask again in {_seconds(wait)}." if wait else "Ask again in a minute."
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
        message = f"{self._title} limits requests{status}"
        return self._error("rate_limited", message, fix, detail=detail, retry_after=wait)

    def _server(self, error: ModelAPIError, detail: str) -> ModelError:
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) and not error.in_stream else ""
        if error.in_stream:
            return self.own_error(detail)
        overloaded = isinstance(error, ModelHTTPError) and error.status_code in _OVERLOADED
        if overloaded or isinstance(error, ModelOverloadedError):
            message = f"{self._title} is overloaded{status}"
        else:
            message = f"{self._title} failed with an internal error{status}"
        fix = "Look at the server's log." if self._at.is_local else "Ask again in a while, or use another model."
        return self._error("server", message, fix, detail=detail, retry_after=error.retry_after)

    def _rejected(self, error: Exception, detail: str) -> ModelError:
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
        if _FILTERED.search(detail):
            return self.refusal(detail)
        if "tool" in detail.lower():
            fix = "Choose a model that can use tools, or ask without tools."
        else:
            fix = "Check base_url: it usually ends in /v1." if self._at.own_url and not detail else ""
        return self._error("bad_request", f"{self._title} rejected the request{status}", fix, detail=detail)

    def _too_long(self, detail: str) -> ModelError:
        fix = "Begin a new session, branch from an earlier message, or let the model see fewer tools."
        return self._error(
            "context_too_long", f"The conversation is too long for {self._at.model}.", fix, detail=detail
        )

    def _unconnected(self, error: ModelConnectionError, *, started: bool) -> ModelError:
        detail = self._without_key(str(_root(error)))
        if started:
            message = f"The connection to {self._title} broke in the middle of the answer."
            return self._error("broken_stream", message, _AGAIN, detail=detail)
        if error.phase is None:
            return self._no_answer(detail)
        if "[SSL" in detail:  # of OpenSSL's exception nothing but its text is left
            message = f"There is no safe connection to {self._at.where}."
            fix = "Check whether base_url should begin with http:// or https://, and the server's certificate."
        elif error.phase in {"read", "write"}:
            message = f"{self._at.where} took the request and hung up without an answer."
            fix = "Look at the server's log." if self._at.is_local else _AGAIN
        else:
            message = f"No server answers at {self._at.where}."
            fix = self._reaching
        return self._error("no_connection", message, fix, detail=detail)

    def _no_answer(self, detail: str) -> ModelError:
        message = f"{self._title} sent no answer that can be read."
        fix = "Check base_url: it usually ends in /v1." if self._at.own_url else _AGAIN
        return self._error("broken_stream", message, fix, detail=detail)

    def _without_key(self, text: str) -> str:
        """Gives a provider's text in one line, cut, and with each word hidden that holds a piece of the key."""
        line = clean_line(" ".join(text[: 4 * _LONGEST_DETAIL].split()))
        for secret in self._secrets:
            size = min(_WINDOW, len(secret))
            pieces = {secret[at : at + size] for at in range(len(secret) - size + 1)}
            line = " ".join("[hidden]" if any(piece in word for piece in pieces) else word for word in line.split(" "))
        return line if len(line) <= _LONGEST_DETAIL else f"{line[: _LONGEST_DETAIL - 1]}…"


def _is_too_long(error: Exception, detail: str) -> bool:
    if isinstance(error, ModelContextWindowExceededError):
        return True
    if isinstance(error, ModelHTTPError) and error.status_code == 413:
        return True
    said = isinstance(error, ModelHTTPError | ModelRequestRejectedError) or (
        isinstance(error, ModelAPIError) and error.in_stream
    )
    return said and not isinstance(error, ModelRateLimitError) and bool(_TOO_LONG.search(detail))


def _said(error: Exception) -> str:
    """Gives what the provider said itself, whatever shape it gave it; nothing of a page that is no API's."""
    if not isinstance(error, ModelAPIError):
        return str(error)
    body: object = error.body
    for key in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(key):
            body = body[key]
    if isinstance(body, dict | list):
        return str(body)
    if not isinstance(body, str):
        return "" if isinstance(error, ModelHTTPError) else error.message
    return "" if body.lstrip()[:1] == "<" else body


def _root(error: BaseException) -> BaseException:
    """Gives what an error came of: what the system said, where it said something."""
    while error.__cause__:
        error = error.__cause__
    return error


def _seconds(wait: float) -> str:
    if wait < 90:
        return f"{max(round(wait), 1)} s"
    return f"{round(wait / 60)} min"
