"""Every answer of a portal, or none, is a structured failure; never a success without data."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import weakref
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from portal import FakePortal
from web import Answer, Asked, Silent, Web

from pegboard.packs._ckan import close, connect
from pegboard.packs._ckan_models import CkanSettings
from pegboard.packs.ckan import get_dataset_details, list_groups, list_tags, search_datasets, status
from pegboard.sdk import testing

from .asking import Configure, Serve, reason_of

pytestmark = pytest.mark.promise("CKN-6")

EMPTY = b'{"success": true, "result": {"count": 0, "results": []}}'


def page(title: str, status_: int = 200) -> Answer:
    """Provide a page of the web server in front of CKAN."""
    return Answer(f"<!DOCTYPE html><title>\n {title} </title>".encode(), status_, "text/html; charset=utf-8")


def error(status_: int, **said: object) -> Answer:
    """CKAN's answer to an invalid request."""
    return Answer(json.dumps({"success": False, "error": said}).encode(), status_)


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (error(400, message="No", __type="Search Query Error"), "invalid_query", "No"),
        (error(403, message="Access denied", __type="Authorization Error"), "forbidden", "Access denied"),
        (error(409, rows=["Bad"], sort=["Worse", "Worst"]), "invalid_parameters", "rows: Bad; sort: Worse, Worst"),
        (error(409, resources=[{"url": ["Missing"]}]), "invalid_parameters", 'resources: {"url":["Missing"]}'),
        (error(500, message="Boom", __type="Internal Server Error"), "server_error", "Boom"),
        (error(200, message="No", __type="Search Error"), "invalid_query", "No"),
        (error(200, message="Odd"), "ckan_error", "Odd"),
        (Answer(b'{"success": false, "error": "Just text"}'), "ckan_error", "Just text"),
        (Answer(b'{"success": false, "error": ["One", "Two"]}'), "ckan_error", "One; Two"),
        (Answer(b'"Bad request: nope"', 400), "bad_request", "Bad request: nope"),
        (Answer(b"{}", 502), "server_error", "127.0.0.1 answered 502 Bad Gateway without a reason."),
        (error(418, message=None), "http_error", "127.0.0.1 answered 418 I'm a Teapot without a reason."),
        (page("Nope", 500), "server_error", "127.0.0.1 answered 500 Internal Server Error with a page, “Nope”,"),
        (page("&lt;Gone&gt; &amp; lost", 404), "not_json", "127.0.0.1 answered 404 Not Found with a page, “<Gone> & l"),
        (page("Denied", 403), "forbidden", "127.0.0.1 answered 403 Forbidden with a page, “Denied”,"),
        (Answer(b"No", 500, "text/plain"), "server_error", "127.0.0.1 answered 500 Internal Server Error with some"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
async def test_an_error_keeps_the_portals_words(
    serve: Serve, asking: Configure, answer: Answer, code: str, message: str
) -> None:
    with asking(serve(lambda _: answer)):
        fault = await reason_of(search_datasets())
    assert (fault.code, fault.status) == (code, answer.status)
    assert fault.message.startswith(message)


@pytest.mark.parametrize(
    "answer",
    [
        page("Login"),
        Answer(b""),
        Answer(b"", 204),
        Answer(b"OK", 200, "text/plain"),
        Answer(EMPTY[:-20]),
        Answer(b'{"success": true, "result": {"count": 1, "results": [{"id": "\xff"}]}}'),
        Answer(b"[" * 100_000),
        Answer(b"{}", 200, headers={"Content-Encoding": "gzip"}),
    ],
    ids=["page", "nothing", "no content", "text", "cut off", "not UTF-8", "without end", "not compressed"],
)
async def test_an_answer_that_is_not_json_is_a_failure(serve: Serve, asking: Configure, answer: Answer) -> None:
    with asking(serve(lambda _: answer)):
        fault = await reason_of(search_datasets())
    assert fault.code == "not_json"


async def test_json_is_recognized_with_any_content_type_and_beginning(serve: Serve, asking: Configure) -> None:
    with asking(serve(lambda _: Answer(b"\xef\xbb\xbf\n " + EMPTY, 200, "text/html"))):
        assert (await search_datasets()).count == 0


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b"42",
        b'"fine"',
        b'{"success": true}',
        b'{"success": "true", "result": {"count": 0, "results": []}}',
        b'{"success": true, "result": null}',
        b'{"success": true, "result": []}',
        b'{"success": true, "result": {"count": null, "results": []}}',
        b'{"success": true, "result": {"count": 1, "results": null}}',
        b'{"success": true, "result": {"count": 1, "results": ["name"]}}',
        b'{"success": true, "result": {"count": 1, "results": [{"title": "no id"}]}}',
        b'{"success": true, "result": {"count": 1, "results": [{"id": null}]}}',
        b'{"success": true, "result": {"count": 1, "results": [{"id": "a", "tags": [null]}]}}',
    ],
)
async def test_json_of_another_shape_is_a_failure(serve: Serve, asking: Configure, body: bytes) -> None:
    with asking(serve(lambda _: Answer(body))):
        fault = await reason_of(search_datasets())
    assert fault.code in {"unexpected_shape", "ckan_error"}
    assert fault.status == 200


async def test_the_path_of_an_unexpected_value_is_named(serve: Serve, asking: Configure) -> None:
    body = b'{"success": true, "result": {"count": 1, "results": [{"id": "a"}, {"id": 7, "tags": "water"}]}}'
    with asking(serve(lambda _: Answer(body))):
        fault = await reason_of(search_datasets())
    assert "result.results.1.tags: Input should be a valid list" in fault.message


@pytest.mark.promise("CKN-1", "CKN-2")
async def test_nulls_instead_of_text_are_accepted(serve: Serve, asking: Configure) -> None:
    fields = ["name", "title", "notes", "url", "author", "organization", "tags", "resources", "groups", "extras"]
    nulls = {"id": "a", **dict.fromkeys(fields)}
    found = {"success": True, "result": {"count": 1, "results": [nulls]}}
    with asking(serve(lambda _: Answer(json.dumps(found).encode()))):
        (hit,) = (await search_datasets()).results
    assert hit.model_dump() == {"id": "a", "title": "a", "organization": None, "tags": [], "summary": ""}
    full = {
        "success": True,
        "result": {**nulls, "resources": [{"id": None, "url": None}], "organization": {"title": None}},
    }
    with asking(serve(lambda _: Answer(json.dumps(full).encode()))):
        details = (await get_dataset_details(id="a")).result
    assert details.title is None
    assert details.resources is not None
    assert details.resources[0].url is None


async def test_groups_and_tags_with_nulls_are_listed(serve: Serve, asking: Configure) -> None:
    group = {"name": "a", "display_name": None, "description": None, "package_count": None}
    with asking(serve(lambda _: Answer(json.dumps({"success": True, "result": [group]}).encode()))):
        assert (await list_groups(all_fields=True)).model_dump()["results"] == [group]

    def tags(asked: Asked) -> Answer:
        if asked.path.endswith("tag_list"):
            return Answer(b'{"success": true, "result": [{"name": "t", "display_name": null}]}')
        items = '{"count": 0, "results": [], "search_facets": {"tags": {"items": [{"name": "t", "count": 3}]}}}'
        return Answer(f'{{"success": true, "result": {items}}}'.encode())

    with asking(serve(tags)):
        told = await list_tags(all_fields=True)
    assert told.model_dump()["results"] == [{"name": "t", "display_name": "t", "count": 3}]


async def test_tags_without_counts_are_a_failure(serve: Serve, asking: Configure) -> None:
    def answer(asked: Asked) -> Answer:
        return Answer(b'{"success": true, "result": []}' if asked.path.endswith("tag_list") else EMPTY)

    with asking(serve(answer)):
        fault = await reason_of(list_tags(all_fields=True))
    assert fault.code == "unexpected_shape"


async def test_ten_megabytes_of_html_are_not_read_to_their_end(serve: Serve, asking: Configure) -> None:
    body = b"<html><head><title>Huge</title></head>" + b"<p>All of it.</p>" * 600_000
    web = serve(lambda _: Answer(body, 200, "text/html", length=len(body) + 1, then="stall"))
    with asking(web, timeout=10):
        fault = await reason_of(search_datasets())
    assert fault.code == "not_json"
    assert "“Huge”" in fault.message


async def test_endless_json_is_not_read_to_its_end(serve: Serve, asking: Configure) -> None:
    body = b'{"success": true, "result": "' + b"x" * (33 * 2**20) + b'"}'
    with asking(serve(lambda _: Answer(body)), timeout=60):
        fault = await reason_of(search_datasets())
    assert fault.code == "too_large"


async def test_a_redirect_to_a_login_page_is_not_followed(serve: Serve, asking: Configure) -> None:
    web = serve(lambda _: Answer(status=302, headers={"Location": "/user/login?came_from=/api"}))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, fault.status, len(web.asked)) == ("redirected", 302, 1)
    assert f"{web.url}/user/login" in fault.message
    assert "came_from" not in fault.message


async def test_an_api_that_has_moved_is_found_and_gets_no_key_on_another_host(serve: Serve, asking: Configure) -> None:
    there = serve(FakePortal())
    here = serve(lambda asked: Answer(status=301, headers={"Location": f"{there.url}{asked.path}?id=water-000"}))
    with asking(here, secrets={"CKAN_API_KEY": "portal-key-4711"}):
        assert (await get_dataset_details(id="water-000")).result.id == "id-000"
    assert "authorization" in here.asked[0].headers
    assert "authorization" not in there.asked[0].headers


async def test_a_redirect_loop_ends(serve: Serve, asking: Configure) -> None:
    web = serve(lambda asked: Answer(status=302, headers={"Location": asked.path}))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, len(web.asked)) == ("redirected", 4)


async def test_a_portal_that_rejects_the_user_agent_is_reported_with_what_to_do(
    serve: Serve, asking: Configure
) -> None:
    web = serve(FakePortal(user_agent="friend/1"))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert fault.code == "forbidden"
    assert "user_agent" in fault.message
    with asking(web, user_agent="friend/1.2 (me)"):
        assert (await search_datasets()).count == 143
    assert web.asked[-1].headers["user-agent"] == "friend/1.2 (me)"


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Provide a port without a listener."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


async def test_a_refused_connection(asking: Configure, closed_port: int) -> None:
    with asking(f"http://127.0.0.1:{closed_port}/api/3") as host:
        fault = await reason_of(search_datasets())
    assert fault.code == "unreachable"
    assert fault.message.startswith("127.0.0.1 can't be reached: ")
    assert host.logged == [], "it is not asked again"


async def test_a_name_that_is_not_found(asking: Configure) -> None:
    with asking("https://portal.invalid/api/3"):
        fault = await reason_of(search_datasets())
    assert fault.code == "unreachable"
    assert fault.message.startswith("portal.invalid can't be reached: ")


async def test_an_untrusted_certificate(serve: Serve, asking: Configure) -> None:
    web = serve(FakePortal(), tls=True)
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, web.asked) == ("tls", [])
    assert "certificate verify failed" in fault.message


async def test_plain_http_where_tls_is_expected(serve: Serve, asking: Configure) -> None:
    web = serve(FakePortal())
    with asking(f"{web.url.replace('http:', 'https:')}/api/3"):
        fault = await reason_of(search_datasets())
    assert fault.code == "tls"


@pytest.mark.parametrize(
    "answer",
    [Silent(then="stall"), Answer(EMPTY[:20], length=len(EMPTY), then="stall")],
    ids=["before the body", "within the body"],
)
async def test_an_answer_that_takes_too_long(serve: Serve, asking: Configure, answer: Answer) -> None:
    web = serve(lambda _: answer)
    with asking(web, timeout=0.3):
        fault = await reason_of(search_datasets())
    assert (fault.code, fault.message, len(web.asked)) == (
        "timeout",
        "127.0.0.1 did not answer within 0.3 seconds.",
        1,
    )


class Once:
    """A portal that sends some other answers first, each once."""

    def __init__(self, *first: Answer) -> None:
        self._first = [*first]
        self._portal = FakePortal()

    def __call__(self, asked: Asked) -> Answer:
        return self._first.pop(0) if self._first else self._portal(asked)


@pytest.mark.promise("CKN-7")
@pytest.mark.parametrize(
    "broken",
    [Silent(then="reset"), Silent(then="close"), Answer(EMPTY[:20], length=len(EMPTY), then="close")],
    ids=["reset", "closed", "closed within the body"],
)
async def test_a_lost_connection_is_retried(serve: Serve, asking: Configure, broken: Answer) -> None:
    web = serve(Once(broken))
    with asking(web) as host:
        assert (await search_datasets()).count == 143
    assert host.logged == ["127.0.0.1 closed the connection; retrying in 0.5 s"]


@pytest.mark.promise("CKN-7")
async def test_repeatedly_lost_connections_are_a_failure(serve: Serve, asking: Configure) -> None:
    web = serve(lambda _: Silent(then="reset"))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, len(web.asked)) == ("connection_lost", 3)


@pytest.mark.promise("CKN-7")
@pytest.mark.parametrize("status_", [429, 503])
async def test_a_busy_portal_is_retried_after_the_requested_wait(serve: Serve, asking: Configure, status_: int) -> None:
    busy = Answer(b"Slow down", status_, "text/plain", {"Retry-After": "0"})
    web = serve(Once(busy, busy))
    with asking(web) as host:
        assert (await search_datasets()).count == 143
    assert len(web.asked) == 3
    assert [line.partition(";")[2] for line in host.logged] == [" retrying in 0 s"] * 2


@pytest.mark.promise("CKN-7")
@pytest.mark.parametrize(("status_", "code"), [(429, "rate_limited"), (503, "unavailable")])
async def test_a_portal_that_stays_busy_is_a_failure(serve: Serve, asking: Configure, status_: int, code: str) -> None:
    web = serve(lambda _: Answer(b"Slow down", status_, "text/plain", {"Retry-After": "0"}))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, fault.status, len(web.asked)) == (code, status_, 3)


@pytest.mark.promise("CKN-7")
@pytest.mark.parametrize("dated", [False, True], ids=["seconds", "date"])
async def test_a_portal_that_requests_a_long_wait_is_a_failure(serve: Serve, asking: Configure, dated: bool) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True) if dated else "600"
    web = serve(lambda _: Answer(b"{}", 429, headers={"Retry-After": later}))
    with asking(web):
        fault = await reason_of(search_datasets())
    assert (fault.code, len(web.asked)) == ("rate_limited", 1)
    assert fault.retry_after == pytest.approx(600, abs=60)


@pytest.mark.promise("CKN-7")
@pytest.mark.parametrize("status_", [500, 502, 504, 409])
async def test_no_other_status_is_retried(serve: Serve, asking: Configure, status_: int) -> None:
    web = serve(lambda _: Answer(b"{}", status_))
    with asking(web):
        await reason_of(search_datasets())
    assert len(web.asked) == 1


@pytest.mark.promise("CKN-7")
async def test_calls_share_their_connections(portal: Web, asking: Configure) -> None:
    with asking(portal):
        for _ in range(5):
            await search_datasets()
        assert portal.connections == 1
        await asyncio.gather(*(search_datasets() for _ in range(40)))
    assert portal.connections <= 10


async def test_another_loop_gets_connections_of_its_own(portal: Web, asking: Configure) -> None:
    def elsewhere() -> int:
        async def ask() -> int:
            count = (await search_datasets()).count
            await close()
            return count

        return asyncio.run(ask())

    with asking(portal):
        assert (await search_datasets()).count == 143
        assert await asyncio.to_thread(elsewhere) == 143
        assert (await search_datasets()).count == 143


async def test_connections_of_an_ended_loop_are_released(portal: Web, asking: Configure) -> None:
    def elsewhere() -> weakref.ref[asyncio.AbstractEventLoop]:
        with asyncio.Runner() as runner:
            runner.run(search_datasets())
            return weakref.ref(runner.get_loop())

    with asking(portal):
        ended = await asyncio.to_thread(elsewhere)
        await search_datasets()
    gc.collect()
    assert ended() is None


async def test_changed_settings_take_effect_at_the_next_call(portal: Web) -> None:
    first = await connect(CkanSettings(base_url=portal.url))
    assert await connect(CkanSettings(base_url=portal.url)) is first
    assert await connect(CkanSettings(base_url=portal.url, timeout=3)) is not first


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"user_agent": "two\nlines"}, "user_agent"),
        ({"user_agent": ""}, "user_agent"),
    ],
)
async def test_an_invalid_configuration_is_reported(config: dict[str, object], wrong: str) -> None:
    with testing.host(config={"ckan": config}):
        fault = await reason_of(status())
    assert fault.code == "invalid_config"
    assert f"{wrong}: " in fault.message


@pytest.mark.parametrize("url", ["", "portal.example.org", "ftp://portal.example.org", "https://", "https://a b"])
async def test_an_invalid_address_is_reported(asking: Configure, url: str) -> None:
    with asking(url):
        fault = await reason_of(status())
    assert fault.code == "invalid_config"
    assert "base_url: " in fault.message


@pytest.mark.parametrize("key", ["two\nlines-of-a-key", "schlüssel"])
async def test_a_key_that_cant_be_sent_is_not_shown(portal: Web, asking: Configure, key: str) -> None:
    with asking(portal, secrets={"CKAN_API_KEY": key}):
        fault = await reason_of(status())
    assert fault.code == "invalid_config"
    assert key not in fault.message
    assert portal.asked == []


async def test_a_password_in_the_address_is_sent_and_not_shown(serve: Serve, asking: Configure) -> None:
    web = serve(lambda _: page("Welcome"))
    with asking(f"{web.url.replace('//', '//me:hunter2@')}/api/3"):
        fault = await reason_of(status())
    assert web.asked[0].headers["authorization"].startswith("Basic ")
    assert f"Check that {web.url}/api/3 is the address of its API." in fault.message


@pytest.mark.parametrize("length", [70_000, 1_000_000])
async def test_arguments_that_are_too_long_are_a_structured_failure(
    portal: Web, asking: Configure, length: int
) -> None:
    text = "x" * length
    with asking(portal):
        for call in (
            search_datasets(query=text), search_datasets(sort=text), get_dataset_details(id=text),
            list_groups(order_by=text), list_tags(query=text),
        ):  # fmt: skip
            fault = await reason_of(call)
            assert (fault.code, f"{length:,} characters" in fault.message) == ("query_too_long", True)
    assert portal.asked == []


async def test_invalid_text_is_a_structured_failure(portal: Web, asking: Configure) -> None:
    with asking(portal):
        assert (await reason_of(list_tags(query="\ud800"))).code == "invalid_query"


@pytest.mark.parametrize("tool", [search_datasets, get_dataset_details, list_groups, list_tags, status])
async def test_positional_arguments_raise_a_type_error(tool: Callable[..., Awaitable[object]]) -> None:
    with pytest.raises(TypeError, match=tool.__name__):
        await tool("water")
