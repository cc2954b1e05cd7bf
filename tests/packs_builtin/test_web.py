"""The web pack reads pages of every kind from a real server."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pegboard.packs import web
from pegboard.sdk import ToolFailed, lazy_client, testing

Reply = tuple[int, Mapping[str, str], bytes]
HTML = {"Content-Type": "text/html; charset=utf-8"}

PAGE = """<!DOCTYPE html><html><head><title> A  page </title><script>evil()</script></head><body>
<h1>Head &amp; shoulders</h1><p>Some <b>bold</b> text
over lines, a <a href="/next#there">link</a>.<ul><li>one<li>two</ul>
<table><tr><th>A<th>B<tr><td>1<td>2</table><pre>code  here
  indented</pre><!-- no --><style>p{}</style><a href="mailto:x@y.z">mail</a></body></html>"""


class Site:
    """Answers of a server by path, and the requests that it received."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.replies: dict[str, Reply] = {"/page": (200, HTML, PAGE.encode())}
        self.asked: list[tuple[str, dict[str, str]]] = []

    def put(self, path: str, body: bytes, status: int = 200, **headers: str) -> str:
        """Set the answer for a path and return the address."""
        self.replies[path] = status, {name.replace("_", "-"): value for name, value in headers.items()}, body
        return self.url + path


@pytest.fixture
def site() -> Iterator[Site]:
    """Provide a server on this machine, and a client of the pack for this test alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.asked.append((self.path, dict(self.headers)))
            status, headers, body = told.replies.get(self.path.partition("?")[0], (404, {}, b"not here"))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    told = Site(f"http://127.0.0.1:{server.server_port}")
    with testing.host():
        yield told
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_is_read_as_markdown(site: Site) -> None:
    page = web.fetch(url=site.url + "/page")
    assert page == {
        "url": site.url + "/page",
        "type": "text/html",
        "title": "A page",
        "length": len(page["text"]),
        "text": f"""# Head & shoulders

Some **bold** text
over lines, a [link]({site.url}/next#there).

- one
- two

| A | B |
| --- | --- |
| 1 | 2 |

```
code  here
  indented
```

[mail](mailto:x@y.z)""",
    }


def test_a_page_is_read_as_text_and_as_source(site: Site) -> None:
    assert web.fetch(url=site.url + "/page", format="text")["text"].split("\n") == [
        "Head & shoulders", "Some bold text over lines, a link.", "one", "two", "A B", "1 2", "code  here",
        "  indented", "mail",
    ]  # fmt: skip
    assert web.fetch(url=site.url + "/page", format="source")["text"] == PAGE


def test_a_long_page_is_continued_at_the_next_character(site: Site) -> None:
    url = site.put("/long", b"0123456789" * 10, Content_Type="text/plain")
    first = web.fetch(url=url, max_characters=95)
    assert (len(first["text"]), first["length"], first["next"]) == (95, 100, 95)
    rest = web.fetch(url=url, start=first["next"])
    assert (rest["text"], "next" in rest) == ("56789", False)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html; charset=latin-1", "<p>grün".encode("latin-1")),
        ("text/html", '<meta charset="latin-1"><p>grün'.encode("latin-1")),
        ("text/html", "<p>grün".encode()),
        ("text/html", "<p>grün".encode("cp1252")),
        ("text/html; charset=made-up", "<p>grün".encode()),
        ("", "<!doctype html><p>grün".encode()),
        ("text/plain; charset=utf-16", "grün".encode("utf-16")),
        ("text/plain; charset=made-up", "grün".encode()),
        ("application/xhtml+xml", "<html><body><p>grün</p></body></html>".encode()),
        ("text/html", "<html><p>grün".encode("utf-16")),
        ("text/csv", "grün".encode("utf-8-sig")),
        ("text/plain; charset=utf-8", "grün".encode("utf-16")),
        ("text/plain", "grün".encode("latin-1")),
    ],
)
def test_the_declared_character_set_is_used(site: Site, kind: str, body: bytes) -> None:
    assert web.fetch(url=site.put("/x", body, Content_Type=kind))["text"] == "grün"


@pytest.mark.parametrize(
    ("kind", "text", "encoding"),
    [
        ("application/rss+xml", '<?xml version="1.0" encoding="windows-1255"?><rss>שלום</rss>', "cp1255"),
        ("application/xml", '<?xml version="1.0" encoding="utf-16"?><a>grün</a>', "utf-8"),
        ("text/plain; charset=iso-8859-1", "“10 €” – more", "cp1252"),
        ("text/plain; charset=gb2312", "朱镕基", "gb18030"),
    ],
)
def test_a_character_set_is_read_as_browsers_and_feed_readers_do(
    site: Site, kind: str, text: str, encoding: str
) -> None:
    assert web.fetch(url=site.put("/x", text.encode(encoding), Content_Type=kind))["text"] == text


@pytest.mark.promise("SDK-5")
def test_redirects_are_followed_and_reported(site: Site) -> None:
    url = site.put("/old", b"", 302, Location="/page")
    assert web.fetch(url=url)["url"] == site.url + "/page"
    loop = site.put("/loop", b"", 302, Location="/loop")
    with pytest.raises(ToolFailed, match="redirects") as failed:
        web.fetch(url=loop)
    assert failed.value.code == "request_failed"


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream", ""])
def test_content_that_is_not_text_is_rejected_with_its_type_and_size(site: Site, kind: str) -> None:
    with pytest.raises(ToolFailed, match=r"\(6 bytes\), not text") as failed:
        web.fetch(url=site.put("/x", b"\0PNG\xff\xfe", Content_Type=kind))
    assert failed.value.code == "not_text"


@pytest.mark.parametrize(
    "kind",
    [
        "application/json", "application/ld+json", "application/rss+xml", "text/x-python",
        "application/yaml", "application/jsonl", "application/octet-stream",
    ],
)  # fmt: skip
def test_text_that_is_not_html_is_returned_unchanged(site: Site, kind: str) -> None:
    assert web.fetch(url=site.put("/x", b"<b>1</b>  2", Content_Type=kind))["text"] == "<b>1</b>  2"


def test_a_cookie_reaches_the_redirects_of_its_call_and_no_other_call(site: Site) -> None:
    url = site.put("/visit", b"", 302, Location="/page", Set_Cookie="visit=1")
    web.fetch(url=url)
    web.fetch(url=site.url + "/page")
    assert [headers.get("Cookie") for _, headers in site.asked] == [None, "visit=1", None]


@pytest.mark.promise("SDK-5")
def test_a_failure_contains_status_and_message(site: Site) -> None:
    with pytest.raises(ToolFailed, match=r"^HTTP error \(404\): not here$") as failed:
        web.fetch(url=site.url + "/nothing")
    assert (failed.value.code, failed.value.data) == ("http_error", {"status": 404, "url": site.url + "/nothing"})


@pytest.mark.promise("SDK-5")
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/", "ftp://example.org/", "file:///etc/passwd", "nonsense", "http://["]
)
def test_a_missing_answer_is_a_failure(site: Site, url: str) -> None:
    with pytest.raises(ToolFailed, match=r"^Request failed: .+") as failed:
        web.fetch(url=url)
    assert failed.value.code == "request_failed"


@pytest.fixture
def small_limit(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Provide a configuration that allows pages of 1,000 bytes."""
    monkeypatch.setattr(web, "_client", lazy_client(web._client_of_config))
    with testing.host(config={"web": {"max_bytes": 1000, "user_agent": "tester/1"}}):
        yield


@pytest.mark.promise("SDK-7", "SDK-10")
def test_too_large_a_page_is_not_read_to_its_end_even_if_it_came_small(site: Site, small_limit: None) -> None:
    assert web.fetch(url=site.put("/fits", b"x" * 1000, Content_Type="text/plain"))["length"] == 1000
    bomb = site.put("/bomb", gzip.compress(b"x" * 10_000_000), Content_Type="text/plain", Content_Encoding="gzip")
    with pytest.raises(ToolFailed, match=r"more than 1,000 bytes"):
        web.fetch(url=bomb)
    assert {headers["User-Agent"] for _, headers in site.asked} == {"tester/1"}


def test_a_compressed_page_is_read(site: Site) -> None:
    url = site.put("/x", gzip.compress(b"<p>hi"), Content_Type="text/html", Content_Encoding="gzip")
    assert web.fetch(url=url)["text"] == "hi"


def test_a_deeply_nested_page_is_read_as_text(site: Site) -> None:
    url = site.put("/deep", b"<div>" * 20_000 + b"<p>hi", Content_Type="text/html")
    assert web.fetch(url=url)["text"] == "hi"


@pytest.mark.promise("SDK-3")
def test_several_pages_are_one_text_and_a_failed_one_affects_no_other(site: Site) -> None:
    one, gone = site.put("/one", b"<p>" + b"x" * 50, Content_Type="text/html"), site.url + "/gone"
    assert web.fetch_many(urls=[gone, one], max_characters=3) == (
        f"=== {gone} ===\nError: HTTP error (404): not here\n\n=== {one} ===\nxxx\n… 47 more characters"
    )


def test_json_is_fetched_with_parameters_and_headers(site: Site) -> None:
    value: Any = {"a": [1, None, 12345678901234567890], "ü": "😀"}
    url = site.put("/api", json.dumps(value).encode(), Content_Type="text/plain")
    assert web.get_json(url=url, parameters={"q": "a b", "n": 1}, headers={"Accept": "application/x"}) == value
    path, headers = site.asked[-1]
    assert (path, headers["Accept"]) == ("/api?q=a+b&n=1", "application/x")


def test_parameters_of_the_address_are_kept_unless_one_of_the_same_name_is_passed(site: Site) -> None:
    url = site.put("/api", b"1", Content_Type="application/json") + "?q=1&key=2"
    web.get_json(url=url)
    web.get_json(url=url, parameters={"q": "new", "page": 3})
    assert [path for path, _ in site.asked] == ["/api?q=1&key=2", "/api?q=new&key=2&page=3"]


def test_content_that_is_not_json_is_a_failure_with_its_beginning(site: Site) -> None:
    with pytest.raises(ToolFailed, match="returned text/html, not JSON") as failed:
        web.get_json(url=site.url + "/page")
    assert failed.value.code == "not_json"
    assert "A  page" in str(failed.value.data)


def test_links_are_listed_once_as_absolute_addresses(site: Site) -> None:
    body = b'<base href="/b/"><a href="x#1"></a><a href=x>The  x</a><a href="//h/y">y</a><a href="javascript:1">z</a><a href="http://[">'
    url = site.put("/links", body, Content_Type="text/html")
    listed = [
        {"text": "The x", "url": site.url + "/b/x"},
        {"text": "y", "url": "http://h/y"},
        {"text": "", "url": "http://["},
    ]
    assert web.links(url=url, max_links=3) == {"links": listed, "truncated": False}
    assert web.links(url=url, max_links=2) == {"links": listed[:2], "truncated": True}
    with pytest.raises(ToolFailed, match="not HTML"):
        web.links(url=site.put("/t", b"x", Content_Type="text/plain"))


@pytest.mark.promise("SDK-7")
def test_one_client_serves_all_calls(site: Site) -> None:
    client: Callable[[], object] = web._client
    assert client() is client()
