"""Errors for the user from the exceptions of the providers' libraries, each with what to do.

Imported late: it loads the library.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal
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

from pegboard.ask.providers.advice import advice
from pegboard.ask.providers.endpoint import Endpoint
from pegboard.ask.providers.limits import CompressedResponseError, ResponseTooLargeError
from pegboard.errors import ModelError, ModelErrorCode
from pegboard.results.clean import clean_line

_LONGEST_DETAIL: Final = 500
_WINDOW: Final = 6
"""Length of a piece of a key that reveals it."""

_SHORTEST_SECRET: Final = 4
"""Minimum length of a value in the base URL that counts as a secret."""

_TOO_LONG: Final = re.compile(
    r"context.?(length|window|size)|(prompt|input) is too long|too many (input )?tokens"
    r"|exceeds? .{0,60}\b(context|n_ctx)\b",
    re.IGNORECASE,
)
"""Words of servers for a conversation that is too long; few send a code."""

_TOO_MANY_TOOLS: Final = re.compile(
    r"(tools|functions|function[ _]?declarations)\b.{0,40}\b(too (long|many)|at most|maximum|limit|exceed)"
    r"|(too many|maximum (number|of)|at most|more than) .{0,20}\b(tools|functions|function[ _]?declarations)",
    re.IGNORECASE,
)
_UNKNOWN_MODEL: Final = re.compile(
    r"\bmodel (does )?not exist\b|\binvalid model( (name|identifier|id)\b|:)|\bnot a valid model\b", re.IGNORECASE
)
"""Words for an unknown model, which DeepSeek, Mistral, LiteLLM and OpenRouter report as an invalid request."""
_WITHOUT_TOOLS: Final = re.compile(r"\bsupports? (tool|function)", re.IGNORECASE)
"""Words for a model that exists but can't use tools, as OpenRouter sends them with the status of an unknown model."""
_INVALID_TOOL: Final = re.compile(
    r"schema for function|function[ _]?(declarations|parameters)\b|tools[.\[]\d+.{0,40}(schema|parameters|name)",
    re.IGNORECASE,
)

_OVERLOADED: Final = (503, 529)

_FILTERED: Final = re.compile(r"content.?(filter|policy|management)|moderation|safety system", re.IGNORECASE)

_MASKED: Final = re.compile(r"[^\s*•….]+(?:\*{2,}|•{2,}|…|\.{3,})[^\s*•….]+")
"""A key as providers quote it, most of it hidden."""

_INVALID_KEY: Final = re.compile(
    r"\bapi.?key\b.{0,20}\b(not valid|invalid|expired)|\b(invalid|incorrect) api.?key", re.IGNORECASE
)
"""Words for a key that is rejected with the status of an invalid request, as Google and xAI do."""

_MESSAGES: Final = ("message", "msg", "detail", "error_description", "errors", "error", "title", "code", "type")
"""Keys of a message in the body of an error, best first."""

_MOST_ERRORS: Final = 5
"""Errors of a list that are quoted."""

_DEEPEST: Final = 8
"""Levels of a body that are searched for a message."""

_AGAIN: Final = "Try again."
_NUMBER: Final = r"(\d{1,9}(?:\.\d+)?) ?"
_AGAIN_IN: Final = re.compile(
    r"\b(?:try again|retry) (?:in|after) (?=\d)"
    rf"(?:{_NUMBER}h(?:ours?)?(?![a-z]))?"
    rf"(?:,? ?{_NUMBER}m(?:in(?:ute)?s?)?(?![a-z]))?"
    rf"(?:,? ?{_NUMBER}(m?)s(?:ec(?:ond)?s?)?(?![a-z]))?",
    re.IGNORECASE,
)
"""Words for the time to wait, which providers also send in a header, but gateways often only in the text."""


class ErrorFactory:
    """Factory of errors for one model.

    Args:
        endpoint: The model.
        key: The key that was sent, or None. No text of an error contains any part of it.
    """

    def __init__(self, endpoint: Endpoint, key: str | None) -> None:
        self._at = endpoint
        self._key = key
        split = urlsplit(endpoint.base_url)
        values = (value for _, value in parse_qsl(split.query))
        others = (split.password or "", unquote(split.password or ""), *values)
        # Shorter values would hide ordinary words.
        self._secrets = tuple({*([key] if key else []), *(one for one in others if len(one) >= _SHORTEST_SECRET)})

    def of(self, error: Exception, *, started: bool) -> ModelError:
        """Return the error for an exception of a library.

        Args:
            error: The exception.
            started: Whether part of the answer had arrived.
        """
        detail = self._without_key(_said(error))
        return self._by_content(error, detail) or self._by_kind(error, detail, started=started)

    def _by_content(self, error: Exception, detail: str) -> ModelError | None:
        """Return the error for a failure whose text or cause is more exact than its type."""
        root = _root(error)
        if isinstance(root, ResponseTooLargeError):
            return self.too_large(str(root))
        if isinstance(root, CompressedResponseError):
            message = f"The answer from {self._title} can't be read"
            fix = "Turn off compression in the server, or in the proxy before it."
            return self._error("broken_stream", message, fix, detail=str(root))
        return self._too_long(detail) if _is_too_long(error, detail) else None

    def _by_kind(self, error: Exception, detail: str, *, started: bool) -> ModelError:
        match error:
            case ModelRequestTimeout():
                message = f"{self._title} sent nothing within {error.timeout:g} s."
                return self._error("timeout", message, fix=self._waiting)
            case ModelConnectionError():
                return self._unconnected(error, started=started)
            case ModelQuotaExceededError() | ModelRateLimitError():
                return self._rate_limited(error, detail)
            case ModelAuthenticationError():
                return self._auth(error, detail)
            case ModelNotFoundError():
                return self._not_found(error, detail)
            case ModelUnavailableError() | ModelServerError():
                return self._server(error, detail, started=started)
            case ModelRequestRejectedError():
                return self._rejected(error, detail)
            case ModelAPIError(in_stream=True):
                return self.own_error(detail, started=started)
            case ModelHTTPError():
                return self._rejected(error, detail)
            case ModelAPIError() | UnexpectedModelBehavior():
                return self.nonsense(error) if started else self._no_answer(detail)
            case UserError():
                return self._rejected(error, detail)
            case _:
                return self.nonsense(error)

    def unusable(self, error: Exception) -> ModelError:
        """Return the error for a model that the library rejects."""
        message = f"{self._at.name} can't be used"
        return self._error(
            "not_configured", message, "Check the model's name and its base_url.", detail=self._without_key(str(error))
        )

    def too_large(self, detail: str) -> ModelError:
        """Return the error for an answer that exceeds the size limit."""
        message = f"The answer from {self._title} was stopped because it is too large"
        return self._error("broken_stream", message, "Try again, or use another model.", detail=detail)

    def silence(self, seconds: float) -> ModelError:
        """Return the error for an answer that stopped arriving."""
        message = f"{self._title} stopped in the middle of its answer: nothing arrived for {seconds:g} s."
        return self._error("timeout", message, fix=self._waiting)

    def nonsense(self, error: Exception) -> ModelError:
        """Return the error for a stream that can't be parsed."""
        message = f"{self._title} sent an answer that can't be parsed"
        return self._error("broken_stream", message, _AGAIN, detail=self._without_key(str(error)))

    def cut_off(self, *, calls: int, is_marked: bool) -> ModelError:
        """Return the error for a stream that ended without a reason.

        Args:
            calls: Number of its calls.
            is_marked: Whether the server sent the end marker.
        """
        if calls and is_marked:
            message = (
                f"{self._title} ended its answer without a finish_reason, so its tool call may be incomplete"
                " and was not run."
            )
            return self._error("broken_stream", message, f"{_AGAIN} If this repeats, update the server.")
        left = " The unfinished tool call was not run." if calls else ""
        message = f"The answer from {self._title} ended before it was complete.{left}"
        return self._error("broken_stream", message, _AGAIN)

    def empty(self) -> ModelError:
        """Return the error for a stream that ended without a reason, before anything arrived."""
        message = f"{self._title} ended its answer before any text or call."
        fix = f"Check that the server can stream its answers. {_AGAIN}" if self._at.own_url else _AGAIN
        return self._error("broken_stream", message, fix)

    def unusable_call(self, why: Literal["nameless", "old"]) -> ModelError:
        """Return the error for a call that can't run.

        Args:
            why: Whether it has no name, or the form `function_call`.
        """
        if why == "nameless":
            message = f"{self._title} sent a tool call without the name of a tool. No call was run."
            return self._error("broken_stream", message, "Try again, or use another model.")
        message = f"{self._title} sent a tool call in the obsolete form `function_call`. No call was run."
        return self._error("broken_stream", message, "Update the server, or ask without tools.")

    def own_error(self, detail: str = "", *, started: bool = True) -> ModelError:
        """Return the error for a failure that the provider reported within its answer, or instead of one."""
        message = f"{self._title} reported an error {'in the middle of its' if started else 'instead of an'} answer."
        return self._error("server", message, _AGAIN, detail=detail)

    def refusal(self, words: str) -> ModelError:
        """Return the error for a model that refuses to answer.

        Args:
            words: Its explanation, or the reason of the provider's filter; empty if there is none.
        """
        message = f"{self._at.model} refused to answer"
        return self._error("refused", message, "Rephrase your message.", detail=self._without_key(words))

    @property
    def _title(self) -> str:
        return self._at.title if not self._at.own_url else f"{self._at.title} at {self._at.where}"

    @property
    def _waiting(self) -> str:
        if self._at.is_local:
            return "Check the server's log, or use a smaller model."
        return _AGAIN

    @property
    def _reaching(self) -> str:
        if self._at.is_local and self._at.start:
            return f"Start it with {self._at.start}, or set base_url to its address."
        return "Check base_url and the server." if self._at.own_url else "Check your network connection."

    @property
    def _usual_url(self) -> str:
        """Form of the URL to which the provider's library adds a path."""
        match self._at.dialect:
            case "openai":
                return "it usually ends in /v1"
            case "anthropic":
                return "Pegboard adds /v1/messages to it"
            case "google":
                return "Pegboard adds /v1beta/models/… to it"

    def _error(
        self,
        code: ModelErrorCode,
        message: str,
        fix: str = "",
        *,
        detail: str = "",
        retry_after: float | None = None,
    ) -> ModelError:
        """Build an error whose message ends with the provider's own words, if there are any."""
        fix = advice(detail, self._at) or fix
        message = message.removesuffix(".")
        said = detail if not detail or detail[-1] in ".!?…" else f"{detail}."
        message = f"{message}: {said}" if said else f"{message}."
        return ModelError(clean_line(message), code=code, fix=clean_line(fix), detail=detail, retry_after=retry_after)

    def _auth(self, error: Exception, detail: str) -> ModelError:
        secret = self._at.secrets[0]
        put = f"run `pegboard auth set {secret}`, or set {secret} in the environment"
        # Providers quote the key in part.
        detail = _MASKED.sub("[hidden]", detail)
        if self._key is None:
            fix = f"{put[0].upper()}{put[1:]}."
            if self._at.own_url:
                fix += (
                    " A key that is set is sent only to the configured base_url, or to `--base-url` of the command"
                    " line."
                )
            return self._error("auth", f"{self._title} requires a key, and none was sent", fix, detail=detail)
        if isinstance(error, ModelHTTPError) and error.status_code == 403:
            message = f"{self._title} doesn't let this key use {self._at.model}"
            return self._error("auth", message, f"Choose another model, or set another key: {put}.", detail=detail)
        return self._error(
            "auth", f"{self._title} rejected the key", f"Check {secret} and set it again: {put}.", detail=detail
        )

    def redirected(self, where: str) -> ModelError:
        """Return the error for a redirect to another server, which was not followed."""
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

    def _not_found(self, error: ModelNotFoundError, detail: str) -> ModelError:
        return self._rejected(error, detail) if _WITHOUT_TOOLS.search(detail) else self._unknown_model(error, detail)

    def _unknown_model(self, error: Exception, detail: str) -> ModelError:
        fixes = []
        if self._at.provider == "ollama":
            fixes.append(f"Download it with `ollama pull {self._at.model}`, or choose another model.")
        elif isinstance(error, ModelHTTPError) and error.suggested_model_id:
            fixes.append(f"Did you mean {error.suggested_model_id}?")
        else:
            fixes.append("Check the model's name.")
        if self._at.own_url:
            fixes.append(f"Check base_url too: {self._usual_url}.")
        return self._error(
            "unknown_model", f"{self._title} has no model {self._at.model}.", " ".join(fixes), detail=detail
        )

    def _rate_limited(self, error: ModelAPIError, detail: str) -> ModelError:
        if isinstance(error, ModelQuotaExceededError):
            message = f"The quota of your account at {self._title} is used up."
            fix = "Check its plan and billing, or use another model."
            return self._error("rate_limited", message, fix, detail=detail)
        wait = error.retry_after or _wait_in(detail)
        fix = f"Try again in {_seconds(wait)}." if wait else "Try again in a minute."
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
        message = f"{self._title} limits the rate of requests{status}"
        return self._error("rate_limited", message, fix, detail=detail, retry_after=wait)

    def _server(self, error: ModelAPIError, detail: str, *, started: bool) -> ModelError:
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) and not error.in_stream else ""
        if error.in_stream:
            return self.own_error(detail, started=started)
        overloaded = isinstance(error, ModelHTTPError) and error.status_code in _OVERLOADED
        if overloaded or isinstance(error, ModelOverloadedError):
            message = f"{self._title} is overloaded{status}"
        else:
            message = f"{self._title} failed with an internal error{status}"
        fix = "Check the server's log." if self._at.is_local else "Try again later, or use another model."
        return self._error("server", message, fix, detail=detail, retry_after=error.retry_after)

    def _rejected(self, error: Exception, detail: str) -> ModelError:
        status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
        if isinstance(error, ModelHTTPError) and _is_limited(error):
            fix = "Start a new session, offer the model fewer tools, or use another model."
            return self._error("rate_limited", f"{self._title} limits the rate of tokens{status}", fix, detail=detail)
        if isinstance(error, ModelHTTPError) and error.status_code == 408:
            return self._error("timeout", f"{self._title} timed out{status}", self._waiting, detail=detail)
        if _INVALID_KEY.search(detail):
            return self._auth(error, detail)
        if _UNKNOWN_MODEL.search(detail):
            return self._unknown_model(error, detail)
        if _FILTERED.search(detail):
            return self.refusal(detail)
        if _TOO_MANY_TOOLS.search(detail):
            fix = "Offer the model fewer tools."
        elif _INVALID_TOOL.search(detail):
            fix = "Don't offer the model the tool that it rejects, or ask without tools."
        elif "tool" in detail.lower():
            fix = "Choose a model that supports tools, or ask without tools."
        else:
            fix = f"Check base_url: {self._usual_url}." if self._at.own_url and not detail else ""
        return self._error("bad_request", f"{self._title} rejected the request{status}", fix, detail=detail)

    def _too_long(self, detail: str) -> ModelError:
        fix = "Start a new session, branch from an earlier message, or offer the model fewer tools."
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
        if "[SSL" in detail:  # only the text of OpenSSL's exception is left
            message = f"A secure connection to {self._at.where} failed."
            fix = "Check whether base_url should start with http:// or https://, and the server's certificate."
        elif error.phase in {"read", "write"}:
            message = f"{self._at.where} closed the connection without an answer."
            fix = "Check the server's log." if self._at.is_local else _AGAIN
        else:
            message = f"The connection to {self._at.where} failed."
            fix = self._reaching
        return self._error("no_connection", message, fix, detail=detail)

    def _no_answer(self, detail: str) -> ModelError:
        message = f"{self._title} sent no valid answer."
        fix = f"Check base_url: {self._usual_url}." if self._at.own_url else _AGAIN
        return self._error("broken_stream", message, fix, detail=detail)

    def _without_key(self, text: str) -> str:
        """Return a provider's text as one line, shortened, with each word hidden that contains a piece of the key."""
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
        return not _is_limited(error)
    said = isinstance(error, ModelHTTPError | ModelRequestRejectedError) or (
        isinstance(error, ModelAPIError) and error.in_stream
    )
    return said and not isinstance(error, ModelRateLimitError) and bool(_TOO_LONG.search(detail))


def _is_limited(error: ModelHTTPError) -> bool:
    """Return whether a request exceeds a rate of tokens, as Groq reports with the status of a too large request."""
    return error.provider_error_code == "rate_limit_exceeded"


def _said(error: Exception) -> str:
    """Return the provider's own message from any shape of body; empty for an HTML page."""
    if not isinstance(error, ModelAPIError):
        return str(error)
    body: object = error.body
    if not isinstance(body, dict | list | str):
        return "" if isinstance(error, ModelHTTPError) else error.message
    said = _words(body)
    if not said and body and not isinstance(body, str):
        said = json.dumps(body, ensure_ascii=False, default=str)
    return "" if said.startswith("<") else said


def _words(body: object, deepest: int = _DEEPEST) -> str:
    """Return the message in a body: of a nested error, of several ones, or the kind of an error without a message."""
    if isinstance(body, str):
        return body.strip()
    if isinstance(body, list) and deepest:
        return "; ".join(filter(None, (_words(one, deepest - 1) for one in body[:_MOST_ERRORS])))
    if not isinstance(body, dict) or not deepest:
        return ""
    keys = ("error", *_MESSAGES) if isinstance(body.get("error"), dict | list) else _MESSAGES
    said = next(filter(None, (_words(body.get(key), deepest - 1) for key in keys)), "")
    where, reason = body.get("loc"), _reason(body)
    if said and isinstance(where, list):  # the argument that a server built with FastAPI rejects
        said = f"{'.'.join(map(str, where))}: {said}"
    return f"{said}: {reason}" if said and reason else said


def _reason(body: dict[str, object]) -> str:
    """Return the error of the provider behind a gateway such as OpenRouter; the gateway's own message is general."""
    metadata = body.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _root(error: BaseException) -> BaseException:
    """Return the first cause of an error."""
    while error.__cause__:
        error = error.__cause__
    return error


def _wait_in(detail: str) -> float | None:
    """Return the seconds to wait that a provider's words name, such as `Please try again in 1m12.5s`."""
    found = _AGAIN_IN.search(detail)
    if found is None:
        return None
    hours, minutes, seconds, is_milli = found.groups()
    return float(hours or 0) * 3600 + float(minutes or 0) * 60 + float(seconds or 0) / (1000 if is_milli else 1)


def _seconds(wait: float) -> str:
    if wait < 90:
        return f"{max(round(wait), 1)} s"
    if wait < 90 * 60:
        return f"{round(wait / 60)} min"
    return f"{round(wait / 3600)} hours" if wait < 36 * 3600 else f"{round(wait / 86400)} days"
