"""The tools over a portal that behaves like CKAN: results, their order and their number."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from portal import CATALOGUE, LISTS, FakePortal, all_tags, tag_names
from pydantic import ValidationError
from web import Answer, Asked, Web

from pegboard.packs._ckan import close, escaped
from pegboard.packs._ckan_models import Group, TagCount
from pegboard.packs.ckan import get_dataset_details, list_groups, list_tags, search_datasets, status
from pegboard.sdk import testing

from .asking import Configure, Serve, reason_of


@pytest.mark.promise("CKN-1")
async def test_a_search_without_a_query_finds_all_and_returns_ten(asked: Web) -> None:
    found = await search_datasets()
    assert found.model_dump(mode="json").keys() == {"success", "count", "results"}
    assert (found.success, found.count, len(found.results)) == (True, len(CATALOGUE), 10)
    assert found.results[0].model_dump() == {
        "id": "id-000",
        "title": "Water in Ashford",
        "organization": "Ashford Council",
        "tags": ["water", "Ashford"],
        "summary": found.results[0].summary,
    }
    assert found.results[0].summary.startswith("All about water. It is measured every day. ")
    assert found.results[0].summary.endswith("…")
    assert len(found.results[0].summary) <= 240
    assert "q" not in asked.asked[0].params


@pytest.mark.promise("CKN-1")
@pytest.mark.parametrize("query", ["", "  ", "*", "*:*", None])
async def test_common_queries_for_everything_find_everything(asked: Web, query: str | None) -> None:
    assert (await search_datasets(query=query, rows=1)).count == len(CATALOGUE)


@pytest.mark.promise("CKN-1")
@pytest.mark.parametrize(
    ("rows", "start", "given_"), [(1, 0, 1), (100, 0, 100), (100, 100, 43), (10, 143, 0), (5, 9999, 0)]
)
async def test_rows_and_start_select_a_part_and_the_count_is_of_all(
    asked: Web, rows: int, start: int, given_: int
) -> None:
    found = await search_datasets(rows=rows, start=start)
    assert found.count == len(CATALOGUE)
    assert [hit.id for hit in found.results] == [item["id"] for item in CATALOGUE[start : start + rows]]
    assert len(found.results) == given_


@pytest.mark.promise("CKN-1")
@pytest.mark.parametrize("direction", ["asc", "desc"])
async def test_sort_orders(asked: Web, direction: str) -> None:
    found = await search_datasets(sort=f"metadata_modified {direction}", rows=100)
    moments = sorted((str(item["metadata_modified"]) for item in CATALOGUE), reverse=direction == "desc")
    by_id = {item["id"]: item["metadata_modified"] for item in CATALOGUE}
    assert [by_id[hit.id] for hit in found.results] == moments[:100]


@pytest.mark.promise("CKN-6")
async def test_a_sort_that_ckan_rejects_is_reported(asked: Web) -> None:
    fault = await reason_of(search_datasets(sort="sideways"))
    assert (fault.code, fault.status) == ("invalid_query", 400)


@pytest.mark.promise("CKN-1")
@pytest.mark.parametrize(
    "query",
    [
        *("a:b", "a: b", "water (draft)", "(draft", "C++", "50%", "50% AND more"),
        *("-draft", 'Water" in', "water !", "in/Ashford", "{!func}"),
    ],
)
async def test_a_query_is_plain_text_with_any_characters(asked: Web, query: str) -> None:
    words = re.findall(r"\w+", query.lower())
    expected = [
        item["id"]
        for item in CATALOGUE
        if set(words) <= set(re.findall(r"\w+", f"{item['title']} {item['notes']} {' '.join(tag_names(item))}".lower()))
    ]
    found = await search_datasets(query=query, rows=100)
    assert [hit.id for hit in found.results] == expected[:100]
    assert found.count == len(expected)


@pytest.mark.promise("CKN-1")
async def test_a_colon_matches_text_and_with_raw_query_a_field(asked: Web) -> None:
    assert (await search_datasets(query="a:b")).count > 0
    assert (await search_datasets(query="a:b", raw_query=True)).count == 0
    assert (await search_datasets(query="title:Water", raw_query=True)).count > 0
    assert asked.asked[-1].params["q"] == "title:Water"


@pytest.mark.promise("CKN-6")
async def test_an_invalid_raw_query_is_reported_in_ckans_words(asked: Web) -> None:
    fault = await reason_of(search_datasets(query="title:(", raw_query=True))
    assert (fault.code, fault.status, fault.type) == ("invalid_query", 409, "Search Error")
    assert "SOLR returned an error" in fault.message


@pytest.mark.promise("CKN-1")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("plain words", "plain words"),
        ("Beer-Sheva 2020-01-01", "Beer-Sheva 2020-01-01"),
        ("תחבורה ציבורית", "תחבורה ציבורית"),
        ("a:b", r"a\:b"),
        (r"a\b", r"a\\b"),
        ("-not +must", r"\-not \+must"),
        ("this AND that OR NOT those", r"this \AND that \OR \NOT those"),
        ("ANDES NOTES FOR", "ANDES NOTES FOR"),
        ("R&D a&&b a||b", r"R&D a\&&b a\||b"),
        ('"(x)" [y TO z] {w}^2~ ? * ! km/h', r"\"\(x\)\" \[y TO z\] \{w\}\^2\~ \? \* \! km\/h"),
    ],
)
def test_only_operators_of_solr_are_escaped(text: str, query: str) -> None:
    assert escaped(text) == query


@given(st.text())
def test_escaping_loses_nothing_and_leaves_no_operator(text: str) -> None:
    query = escaped(text)
    assert re.sub(r"\\(.)", r"\1", query, flags=re.DOTALL) == text
    bare = re.sub(r"\\(.)", "x", query, flags=re.DOTALL)
    assert not re.search(r'[!(){}\[\]^"~*?:/\\]|&&|\|\||(^|\s)[+-]', bare)


@pytest.mark.promise("CKN-2")
@pytest.mark.parametrize("id", ["id-003", "trees-003"])
async def test_details_contain_all_data_of_the_portal(asked: Web, id: str) -> None:  # noqa: A002 - the parameter's name
    details = (await get_dataset_details(id=id)).model_dump(mode="json")
    told, sent = details["result"], CATALOGUE[3]
    assert details["success"] is True
    for name in ("title", "notes", "license_title", "private", "num_resources"):
        assert told[name] == sent[name]
    for resource, whole in zip(told["resources"], sent["resources"], strict=True):  # type: ignore[call-overload] # a list
        assert resource.items() >= whole.items()
        assert list(resource)[:3] == ["name", "format", "url"], "what is looked for first comes first"
    assert [tag["name"] for tag in told["tags"]] == tag_names(sent)


@pytest.mark.promise("CKN-6")
async def test_an_id_that_the_portal_doesnt_know_is_not_found(asked: Web) -> None:
    fault = await reason_of(get_dataset_details(id="nowhere"))
    assert (fault.code, fault.status, fault.message) == ("not_found", 404, "Not found")


async def test_a_key_allows_access_to_private_datasets(portal: Web, asking: Configure) -> None:
    with asking(portal):
        fault = await reason_of(get_dataset_details(id="secret-plans"))
    assert (fault.code, fault.status) == ("forbidden", 403)
    with asking(portal, secrets={"CKAN_API_KEY": " portal-key-4711\n"}):
        assert (await get_dataset_details(id="secret-plans")).result.name == "secret-plans"
    with asking(portal):
        await reason_of(get_dataset_details(id="secret-plans"))
    assert "authorization" not in portal.asked[-1].headers


@pytest.fixture(scope="module")
def capped() -> Iterator[Web]:
    """Provide a portal with at most 20 names a page."""
    with Web(FakePortal(names_cap=20)).running() as web:
        yield web


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """Provide an event loop for many examples."""
    with asyncio.Runner() as runner:
        yield runner
        runner.run(close())


@pytest.mark.promise("CKN-3")
@settings(max_examples=120)
@given(
    limit=st.none() | st.integers(0, 80),
    offset=st.none() | st.integers(0, 80),
    all_fields=st.booleans(),
    organizations=st.booleans(),
    order_by=st.sampled_from([None, "name", "title desc", "package_count", "name desc"]),
)
def test_limit_and_offset_are_exact_over_any_number_of_pages(
    capped: Web,
    runner: asyncio.Runner,
    limit: int | None,
    offset: int | None,
    all_fields: bool,
    organizations: bool,
    order_by: str | None,
) -> None:
    groups = LISTS["organization_list" if organizations else "group_list"]
    field, _, direction = (order_by or "title").partition(" ")
    in_order = sorted(
        groups,
        key=lambda item: item[field],  # type: ignore[arg-type, return-value] # of one type in a field
        reverse=direction == "desc" or order_by == "package_count",
    )
    expected = in_order[offset or 0 :][: len(groups) if limit is None else limit]

    async def listed() -> list[str] | list[Group]:
        with testing.host(config={"ckan": {"base_url": capped.url}}):
            arguments = {"limit": limit, "offset": offset}
            told = await list_groups(**arguments, order_by=order_by, all_fields=all_fields, organizations=organizations)
            return told.results

    told = runner.run(listed())
    assert [item.name if isinstance(item, Group) else item for item in told] == [item["name"] for item in expected]
    assert all(isinstance(item, Group) == all_fields for item in told)


@pytest.mark.promise("CKN-3")
async def test_all_fields_are_name_title_description_and_count(asked: Web) -> None:
    (told,) = (await list_groups(all_fields=True, limit=1, order_by="name")).model_dump()["results"]
    assert told == {"name": "group-00", "display_name": "Group 0", "description": None, "package_count": 0}


@pytest.mark.promise("CKN-3")
async def test_a_long_list_reports_progress(portal: Web, asking: Configure) -> None:
    with asking(portal) as host:
        await list_groups(all_fields=True, limit=60)
    assert [said.done for said in host.progressed] == [25, 50, 60]
    assert [request.params["limit"] for request in portal.asked] == ["60", "35", "10"]


@pytest.mark.promise("CKN-3")
async def test_a_portal_that_doesnt_page_is_listed_once(serve: Serve, asking: Configure) -> None:
    whole = FakePortal()

    def careless(asked: Asked) -> Answer:
        return whole(Asked(asked.path, {"all_fields": "false"}, asked.headers, asked.peer))

    with asking(serve(careless)):
        assert len((await list_groups()).results) == len(LISTS["group_list"])
        assert len((await list_groups(limit=7)).results) == 7


@pytest.mark.promise("CKN-6")
async def test_an_order_that_ckan_rejects_is_reported(asked: Web) -> None:
    fault = await reason_of(list_groups(order_by="nosuch"))
    assert (fault.code, fault.message) == ("invalid_parameters", "Cannot sort by field `nosuch`")


@pytest.mark.promise("CKN-4")
@pytest.mark.parametrize("query", [None, "", "a", "OPEN", "nothing like it"])
async def test_tags_are_filtered_and_have_the_counts_of_all_datasets(asked: Web, query: str | None) -> None:
    counts = Counter(all_tags())
    expected = {name: count for name, count in counts.items() if (query or "").lower() in name.lower()}
    names = (await list_tags(query=query)).results
    assert names == list(expected)
    whole = (await list_tags(query=query, all_fields=True)).results
    assert {tag.name: tag.count for tag in whole if isinstance(tag, TagCount)} == expected


@pytest.mark.promise("CKN-5")
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"rows": "ten"}, "int_type"),
        ({"rows": 10000}, "less_than_equal"),
        ({"rows": 0}, "greater_than_equal"),
        ({"start": -1}, "greater_than_equal"),
        ({"query": 7}, "string_type"),
        ({"raw_query": "yes"}, "bool_type"),
        ({"bogus": 1}, "unexpected_keyword_argument"),
    ],
)
async def test_arguments_are_validated_before_any_request(asked: Web, arguments: dict[str, object], kind: str) -> None:
    with pytest.raises(ValidationError) as raised:
        await search_datasets(**arguments)  # type: ignore[arg-type] # that they don't fit is the test
    assert [fault["type"] for fault in raised.value.errors()] == [kind]
    assert asked.asked == []


@pytest.mark.promise("CKN-5")
async def test_the_other_tools_validate_theirs_too(asked: Web) -> None:
    for asking in (
        lambda: get_dataset_details(id=""),
        lambda: list_groups(limit=-1),
        lambda: list_groups(offset=1.5),  # type: ignore[arg-type] # that it doesn't fit is the test
        lambda: list_tags(query=["a"]),  # type: ignore[arg-type] # as above
    ):
        with pytest.raises(ValidationError):
            await asking()
    assert asked.asked == []


async def test_the_status_is_the_portals_version_and_extensions(asked: Web) -> None:
    assert (await status()).model_dump() == {
        "success": True,
        "base_url": f"{asked.url}/api/3",
        "ckan_version": "2.12.0",
        "site_title": "The Made-up Portal",
        "site_url": "https://portal.example.org",
        "extensions": ["datastore", "harvest"],
    }


@pytest.mark.promise("PCK-5")
@pytest.mark.parametrize("path", ["", "/", "/api/3", "/api/3/"])
async def test_the_address_may_be_that_of_the_portal_or_of_its_api(portal: Web, asking: Configure, path: str) -> None:
    with asking(portal.url + path):
        assert (await status()).base_url == f"{portal.url}/api/3"
