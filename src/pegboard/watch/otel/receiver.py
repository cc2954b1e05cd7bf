"""OTLP over HTTP, for agents on this machine."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pegboard.watch.gate import print_message
from pegboard.watch.listener import HOST, is_local, listen, serve
from pegboard.watch.otel.recorder import SpanRecorder
from pegboard.watch.otel.spans import BodyError, Received, from_json, from_protobuf

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

PORT: Final = 4318
"""The port of OTLP over HTTP."""
PATH: Final = "/v1/traces"
MOST_BYTES: Final = 16 * 2**20
"""Size of a body beyond which it is rejected, compressed and unpacked."""
_MOST_HELD: Final = 4 * MOST_BYTES
"""Size of all bodies in memory, whose spans aren't written yet, beyond which senders must try again."""
_BODY_SECONDS: Final = 30.0
_MOST_CONNECTIONS: Final = 256
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"
_PARSERS: Final[dict[str, Callable[[bytes], Received]]] = {_PROTOBUF: from_protobuf, _JSON: from_json}


class _Memory:
    """Bytes of bodies in memory; changed by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = 0

    def hold(self, size: int) -> bool:
        """Add bytes; return whether there are not too many."""
        with self._lock:
            self._held += size
            return self._held <= _MOST_HELD

    def release(self, size: int) -> None:
        """Subtract bytes."""
        with self._lock:
            self._held -= size


class Receiver:
    """The receiver, an ASGI application.

    Args:
        recorder: The record.
        port: The port that it is reached at.
    """

    def __init__(self, recorder: SpanRecorder, port: int) -> None:
        self._recorder = recorder
        self._port = port
        self._memory = _Memory()
        self._parsing = asyncio.Lock()  # A parsed body takes a multiple of its size.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            response = await self._export(request, kind)
        except HTTPException as error:
            response = _failed(error, kind)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _export(self, request: Request, kind: str) -> Response:
        self._check(request, kind)
        size = sent = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = bytearray()
                packing = zlib.decompressobj(zlib.MAX_WBITS | 16) if _is_packed(request) else None
                async for chunk in request.stream():
                    sent += len(chunk)
                    piece = _unpacked(packing, chunk, MOST_BYTES - len(body)) if packing else chunk
                    body += piece
                    size += len(piece)
                    if not self._memory.hold(len(piece)):
                        raise _overloaded()
                    if max(len(body), sent) > MOST_BYTES:
                        raise HTTPException(413, f"The body has more than {MOST_BYTES:,} bytes. Send smaller batches.")
            if packing is not None and not packing.eof:
                raise HTTPException(400, "The body is not complete gzip data.")
            async with self._parsing:
                received = await asyncio.to_thread(_PARSERS[kind], bytes(body))
            if not self._recorder.offer(received.spans, partial(self._memory.release, size)):
                raise _overloaded()
            size = 0
        except BodyError as error:
            raise HTTPException(400, str(error)) from error
        except TimeoutError as error:
            raise HTTPException(408, f"The body did not arrive within {_BODY_SECONDS:g} seconds.") from error
        finally:
            self._memory.release(size)
        return _accepted(received, kind)

    def _check(self, request: Request, kind: str) -> None:
        """Check everything before the body.

        Raises:
            HTTPException: The request is rejected.
        """
        if not is_local(request.headers.raw, self._port):
            raise HTTPException(403, "The request does not come from this machine.")
        if request.url.path != PATH:
            raise HTTPException(404, f"Only traces are received, at {PATH}.")
        if request.method != "POST":
            raise HTTPException(405, "Traces are sent with POST.", {"Allow": "POST"})
        if kind not in _PARSERS:
            raise HTTPException(415, f"The content type must be {_PROTOBUF} or {_JSON}.")
        if request.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
            raise HTTPException(415, "The content encoding must be gzip or identity.")
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > 10 or int(length) > MOST_BYTES:
            raise HTTPException(413, f"The body has more than {MOST_BYTES:,} bytes. Send smaller batches.")


def _is_packed(request: Request) -> bool:
    return request.headers.get("content-encoding", "").lower() == "gzip"


def _unpacked(packing: zlib._Decompress, chunk: bytes, most: int) -> bytes:
    """Return the next bytes of a body, one more than the most if it has more."""
    try:
        return packing.decompress(chunk, most + 1)
    except zlib.error as error:
        raise HTTPException(400, f"The body is not valid gzip data: {error}") from error


def _overloaded() -> HTTPException:
    return HTTPException(503, "Spans arrive faster than they can be recorded. Try again.", {"Retry-After": "1"})


def _accepted(received: Received, kind: str) -> Response:
    """Return an `ExportTraceServiceResponse`."""
    from google.protobuf.json_format import MessageToJson
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTracePartialSuccess,
        ExportTraceServiceResponse,
    )

    answer = ExportTraceServiceResponse()
    if received.rejected:
        partial = ExportTracePartialSuccess(rejected_spans=received.rejected, error_message=received.reason)
        answer.partial_success.CopyFrom(partial)
    content = answer.SerializeToString() if kind == _PROTOBUF else MessageToJson(answer, indent=None)
    return Response(content, media_type=kind)


def _failed(error: HTTPException, kind: str) -> Response:
    """Return a `google.rpc.Status` with the reason, in the format of the request."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess

    if kind not in _PARSERS:
        return Response(error.detail, error.status_code, error.headers, "text/plain")
    if kind == _JSON:
        from pydantic_core import to_json

        return Response(to_json({"message": error.detail}), error.status_code, error.headers, kind)
    # Its message has the same field number as the message of a `google.rpc.Status`, which is in another distribution.
    status = ExportTracePartialSuccess(error_message=error.detail)
    return Response(status.SerializeToString(), error.status_code, error.headers, kind)


def receive_spans(port: int, started: Callable[[str], object]) -> int:
    """Record the spans that agents on this machine send, until a signal ends the program.

    Args:
        port: Port to listen on; 0 for a free one.
        started: Called with the address.

    Returns:
        The exit code for the signal.

    Raises:
        RemoteError: The port can't be used.
    """
    from pegboard.config import Paths, Secrets, load
    from pegboard.history import History
    from pegboard.runtime.redaction import SecretRedaction

    listener = listen(port)
    actual = listener.getsockname()[1]
    paths = Paths.from_environment()
    settings, _ = load()
    redaction = SecretRedaction(Secrets(paths), settings)
    recorder = SpanRecorder(History(paths.database, paths.results), redaction, print_message)

    async def run() -> int:
        receiver = Receiver(recorder, actual)
        return await serve(
            receiver,
            listener,
            lambda: started(f"http://{HOST}:{actual}{PATH}"),
            limit_concurrency=_MOST_CONNECTIONS,
        )

    try:
        return asyncio.run(run())
    finally:
        recorder.close()
