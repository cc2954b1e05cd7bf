"""A portal that behaves like CKAN 2.12, over an invented catalogue."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping

from web import Answer, Asked

Json = dict[str, object]

TOPICS = ["water", "roads", "schools", "trees", "noise", "budget", "buses", "health", "parks", "waste"]
PLACES = ["Ashford", "Brook", "Carden", "Dale", "Elm", "Fenwick"]
GROUPS = 61
ORGANIZATIONS = 30
DATASETS = 143
ALL_FIELDS_CAP = 25

KNOWN = {"q", "rows", "start", "sort", "facet.field", "facet.limit", "fq", "facet"}
WORDS = re.compile(r"\w+")
UNESCAPED_COLON = re.compile(r"(?<!\\):")


class Problem(Exception):  # noqa: N818 - it reads as a sentence where it is raised
    """Rejection of a request by CKAN."""

    def __init__(self, status: int, type: str, **said: object) -> None:  # noqa: A002 - CKAN's word
        self.status = status
        self.error = {**said, "__type": type}


def dataset(number: int) -> Json:
    """Return a dataset. Every seventh has many null fields, and some words contain characters of the query syntax."""
    topic, place = TOPICS[number % len(TOPICS)], PLACES[number % len(PLACES)]
    bare = number % 7 == 6
    signs = ["", " (draft)", " a:b", " C++", " 50% AND more"][number % 5]
    tags = [topic, place, *(["open data"] if number % 2 else [])]
    return {
        "id": f"id-{number:03}",
        "name": f"{topic}-{number:03}",
        "title": None if bare else f"{topic.title()} in {place}{signs}",
        "notes": None if bare else f"All about {topic}.\n\n" + "It is measured every day. " * 20,
        "metadata_modified": f"2026-{1 + number % 12:02}-{1 + number % 28:02}T12:00:00.{number:06}",
        "organization": None if bare else {"id": f"o-{number % 6}", "name": place.lower(), "title": f"{place} Council"},
        "tags": [{"id": f"t-{tag}", "name": tag, "display_name": tag, "state": "active"} for tag in tags],
        "resources": [
            {
                "id": f"r-{number}-{index}",
                "name": f"{topic.title()} {2020 + index}",
                "format": kind,
                "url": f"https://files.example.org/{topic}/{number}/{2020 + index}.{kind.lower()}",
                "description": None if bare else f"{place}, the year {2020 + index}",
                "size": 1000 * (index + 1),
                "hash": "",
                "position": index,
            }
            for index, kind in enumerate(["CSV", "XLSX", "JSON"][: 1 + number % 3])
        ],
        "groups": [],
        "extras": [{"key": "cadence", "value": "daily"}],
        "license_title": "Open Licence",
        "private": False,
        "num_resources": 1 + number % 3,
    }


def group(number: int, kind: str) -> Json:
    """Return a group or an organization."""
    return {
        "id": f"{kind}-{number}",
        "name": f"{kind}-{(number * 37) % 100:02}",
        "title": f"{kind.title()} {number}",
        "display_name": f"{kind.title()} {number}",
        "description": None if number % 5 == 0 else f"What {kind} {number} is about",
        "package_count": (number * 13) % 40,
        "is_organization": kind == "organization",
        "state": "active",
    }


CATALOGUE = [dataset(number) for number in range(DATASETS)]
LISTS = {
    "group_list": [group(number, "group") for number in range(GROUPS)],
    "organization_list": [group(number, "organization") for number in range(ORGANIZATIONS)],
}


class FakePortal:
    """Handler that answers like CKAN.

    Attributes:
        names_cap: Highest number of names in a list; 1,000 in a real portal.
        user_agent: The only user agent that it accepts; None for any.
        key: The key to the private dataset.
    """

    def __init__(self, *, names_cap: int = 1000, user_agent: str | None = None, key: str = "portal-key-4711") -> None:
        self.names_cap = names_cap
        self.user_agent = user_agent
        self.key = key

    def __call__(self, asked: Asked) -> Answer:
        """Answer one request."""
        if self.user_agent is not None and self.user_agent not in asked.headers.get("user-agent", ""):
            return Answer(b"<html><head><title>403 Forbidden</title></head></html>", 403, "text/html")
        action = asked.path.removeprefix("/api/3/action/")
        answering = ACTIONS.get(action)
        if answering is None:
            return Answer(json.dumps(f"Bad request: Action name not known: {action}").encode(), 400)
        said: Json = {"help": f"http://portal/api/3/action/help_show?name={action}"}
        try:
            said |= {"success": True, "result": answering(self, action, asked)}
        except Problem as problem:
            said |= {"success": False, "error": problem.error}
            return Answer(json.dumps(said).encode(), problem.status)
        return Answer(json.dumps(said).encode())

    def search(self, _action: str, asked: Asked) -> Json:
        """Answer `package_search`."""
        params = asked.params
        unknown = sorted(params.keys() - KNOWN)
        if unknown:
            raise Problem(400, "Search Query Error", message=f"Search Query is invalid: {unknown}")
        rows, start = natural(params, "rows", 10), natural(params, "start", 0)
        found = [item for item in CATALOGUE if matching(params.get("q", ""))(item)]
        found = ordered(found, params.get("sort"))
        counts: dict[str, dict[str, int]] = {}
        for field in json.loads(params.get("facet.field", "[]")):
            all_ = Counter(tag for item in found for tag in tag_names(item))
            limit = int(params.get("facet.limit", "50"))
            counts[field] = dict(all_.most_common(None if limit < 0 else limit))
        return {
            "count": len(found),
            "facets": counts,
            "results": found[start : start + min(rows, 1000)],
            "sort": params.get("sort", "score desc, metadata_modified desc"),
            "search_facets": {},
        }

    def show(self, _action: str, asked: Asked) -> Json:
        """Answer `package_show`."""
        wanted = asked.params.get("id")
        if not wanted:
            raise Problem(409, "Validation Error", name_or_id=["Missing value"])
        if wanted == "secret-plans":
            if asked.headers.get("authorization") != self.key:
                raise Problem(403, "Authorization Error", message="Access denied: not authorized to read it")
            return {**dataset(0), "id": "secret", "name": wanted, "private": True}
        for item in CATALOGUE:
            if wanted in (item["id"], item["name"]):
                return item
        raise Problem(404, "Not Found Error", message="Not found")

    def groups(self, action: str, asked: Asked) -> list[object]:
        """Answer `group_list` and `organization_list`."""
        params = asked.params
        all_fields = params.get("all_fields", "").lower() in {"true", "1", "yes"}
        cap = ALL_FIELDS_CAP if all_fields else self.names_cap
        limit, offset = natural(params, "limit", cap) or cap, natural(params, "offset", 0)
        sort = params.get("sort") or params.get("order_by") or "title asc"
        if sort in {"packages", "package_count"}:
            sort = "package_count desc"
        field, _, direction = sort.partition(" ")
        if field not in {"name", "title", "package_count"}:
            raise Problem(409, "Validation Error", message=f"Cannot sort by field `{field}`")
        listed = sorted(LISTS[action], key=lambda item: item[field], reverse=direction == "desc")  # type: ignore[arg-type, return-value] # of one type in a field
        page = listed[offset : offset + min(limit, cap)]
        return [item if all_fields else item["name"] for item in page]

    def tags(self, _action: str, asked: Asked) -> list[object]:
        """Answer `tag_list`, which has no counts."""
        wanted = asked.params.get("query", "").lower()
        names = [name for name in dict.fromkeys(all_tags()) if wanted in name.lower()]
        if asked.params.get("all_fields", "").lower() == "true":
            return [{"id": f"t-{name}", "name": name, "display_name": name, "vocabulary_id": None} for name in names]
        return [*names]

    def status(self, _action: str, _asked: Asked) -> Json:
        """Answer `status_show`."""
        return {
            "site_title": "The Made-up Portal",
            "site_url": "https://portal.example.org",
            "ckan_version": "2.12.0",
            "extensions": ["datastore", "harvest"],
        }


Answering = Callable[[FakePortal, str, Asked], object]
ACTIONS: Mapping[str, Answering] = {
    "package_search": FakePortal.search,
    "package_show": FakePortal.show,
    "group_list": FakePortal.groups,
    "organization_list": FakePortal.groups,
    "tag_list": FakePortal.tags,
    "status_show": FakePortal.status,
}


def natural(params: Mapping[str, str], name: str, default: int) -> int:
    """Parse a number as CKAN does."""
    text = params.get(name)
    if text is None:
        return default
    if not re.fullmatch(r"-?\d+", text):
        raise Problem(409, "Validation Error", **{name: ["Invalid integer", "Please enter an integer value"]})
    if int(text) < 0:
        raise Problem(409, "Validation Error", **{name: ["Must be a natural number"]})
    return int(text)


def matching(query: str) -> Callable[[Json], bool]:
    """Parse a query roughly as Solr does: a field with a colon, `-` for exclusion, else words."""
    if query in {"", "*:*"}:
        return lambda _: True
    bare = re.sub(r"\\.", "", query)
    if bare.count("(") != bare.count(")") or bare.count('"') % 2:
        message = f"Search error: 'SOLR returned an error running query: {query!r} Error: Cannot parse'"
        raise Problem(409, "Search Error", message=message)
    if UNESCAPED_COLON.search(query):
        field, _, value = query.partition(":")
        wanted = value.strip('"()').lower()
        return lambda item: wanted in str(item.get(field) or "").lower()
    terms = query.split()
    without = [word for term in terms if term.startswith("-") for word in words(term)]
    wanted_words = [word for term in terms if not term.startswith("-") for word in words(term)]
    return lambda item: set(wanted_words) <= text_of(item) and not set(without) & text_of(item)


def words(text: str) -> list[str]:
    """Split a text into words as Solr's analysis does, without backslashes and punctuation."""
    return [word.lower() for word in WORDS.findall(text)]


def text_of(item: Json) -> set[str]:
    """Return the searchable words of a dataset."""
    return set(words(" ".join([str(item["title"] or ""), str(item["notes"] or ""), *tag_names(item)])))


def tag_names(item: Json) -> list[str]:
    """Return the tags of a dataset."""
    tags = item["tags"]
    assert isinstance(tags, list)
    return [tag["name"] for tag in tags]


def all_tags() -> list[str]:
    """Return the tags of all datasets, with repetitions."""
    return [tag for item in CATALOGUE for tag in tag_names(item)]


def ordered(found: list[Json], sort: str | None) -> list[Json]:
    """Sort as `package_search` does."""
    if sort is None:
        return found
    field, _, direction = sort.partition(" ")
    if direction not in {"asc", "desc"}:
        raise Problem(400, "Search Query Error", message="Search Query is invalid: 'Invalid \"sort\" parameter'")
    return sorted(found, key=lambda item: str(item.get(field)), reverse=direction == "desc")
