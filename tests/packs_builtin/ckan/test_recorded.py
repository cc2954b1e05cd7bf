"""Recorded answers of real portals, served again with status and content type: each has the right result or error."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any  # JSON as it was recorded

import pytest
from web import Answer

from pegboard.packs._ckan_models import Details, Group, SearchResult, TagCount
from pegboard.packs.ckan import get_dataset_details, list_groups, list_tags, search_datasets, status

from .asking import Configure, Serve, reason_of

Call = Callable[[], Coroutine[object, object, object]]
Recorded = Callable[[str], tuple[Answer, Any]]


ASKED: dict[str, Call] = {
    "package_search": search_datasets,
    "package_show": lambda: get_dataset_details(id="flydata"),
    "group_list": list_groups,
    "unknown_action": status,
    "not_json": search_datasets,
}
"""Beginning of a recording's name → the request for it."""

SEARCHES = [
    "package_search_q_transport",
    "package_search_sort",
    "package_search_page2",
    "package_search_past_end",
    "package_search_facets",
    "package_search_rows10000",
    "package_search_badsort",
    "package_search_colon",
]
FAULTS = {
    "package_search_rows_ten": ("invalid_parameters", "rows: Invalid integer, Please enter an integer value"),
    "package_search_rows_neg": ("invalid_parameters", "rows: Must be a natural number"),
    "package_search_badsort2": ("invalid_query", "Search Query is invalid: 'Invalid \"sort\" parameter'"),
    "package_search_badq": ("invalid_query", "Search error: 'SOLR returned an error running query: "),
    "package_search_unknown": ("invalid_query", "Search Query is invalid: \"Invalid search parameters: ['bogus']\""),
    "package_show_404": ("not_found", "Not found"),
    "package_show_noid": ("invalid_parameters", "name_or_id: Missing value"),
    "group_list_sort_bad": ("invalid_parameters", "Cannot sort by field `nosuch`"),
    "group_list_limit_bad": ("invalid_parameters", "limit: Invalid integer"),
    "unknown_action": ("bad_request", "Bad request: Action name not known: nope"),
    "not_json": ("not_json", "127.0.0.1 answered 200 OK with a page, “Dataset - CKAN”, where JSON was expected."),
}
NAMES = ["group_list", "group_list_paged", "group_list_orderby", "tag_list", "tag_list_query", "tag_list_query_nomatch"]
OBJECTS = ["group_list_all_fields", "group_list_sort", "organization_list_all_fields"]
ELSEWHERE = {"package_show_ok", "tag_list_all_fields", "status_show"}


@pytest.fixture
def recorded(data_folder: Path) -> Recorded:
    """Return a function that returns a recorded answer of CKAN, and its JSON or None."""
    folder = data_folder / "ckan" / "real-ckan-2.12"
    rows = [line.split("\t") for line in (folder / "STATUS.tsv").read_text().splitlines()]
    kinds = {name: (int(status_), kind) for name, status_, kind, *_ in rows}

    def answer(name: str) -> tuple[Answer, Any]:
        file = next(folder.glob(f"{name}.json"), None) or folder / f"{name}_TRIMMED60.json"
        status_, kind = kinds[name]
        body = file.read_bytes()
        return Answer(body, status_, kind), json.loads(body) if kind.startswith("application/json") else None

    return answer


@pytest.fixture
def alphagov(data_folder: Path) -> Recorded:
    """Return a function that returns a recorded answer of data.gov.uk, and its JSON."""

    def answer(name: str) -> tuple[Answer, Any]:
        body = (data_folder / "ckan" / "alphagov-data.gov.uk" / f"{name}.json").read_bytes()
        return Answer(body), json.loads(body)

    return answer


def contains(result: object, sent: object) -> bool:
    """Return whether a result contains all data that was sent, with null for omitted fields."""
    if isinstance(sent, dict):
        return isinstance(result, dict) and all(name in result and contains(result[name], sent[name]) for name in sent)
    if isinstance(sent, list):
        return isinstance(result, list) and len(result) == len(sent) and all(map(contains, result, sent))
    return result == sent


def check_found(found: object, sent: Any, rows: int) -> None:
    assert isinstance(found, SearchResult)
    assert found.success is True
    assert found.count == sent["result"]["count"]
    packages = sent["result"]["results"][:rows]
    assert [hit.id for hit in found.results] == [package["id"] for package in packages]
    for hit, package in zip(found.results, packages, strict=True):
        assert hit.title == (package["title"] or package["name"])
        assert hit.organization == (package["organization"] or {}).get("title")
        assert hit.tags == [tag["name"] for tag in package["tags"]]
        assert len(hit.summary) <= 240
        assert " ".join((package["notes"] or "").split()).startswith(hit.summary.removesuffix("…"))


@pytest.mark.promise("CKN-8")
def test_every_recorded_answer_has_a_test(data_folder: Path) -> None:
    rows = (data_folder / "ckan" / "real-ckan-2.12" / "STATUS.tsv").read_text().splitlines()
    assert {row.partition("\t")[0] for row in rows} == {*SEARCHES, *FAULTS, *NAMES, *OBJECTS, *ELSEWHERE}


@pytest.mark.promise("CKN-8", "CKN-1")
@pytest.mark.parametrize("name", SEARCHES)
async def test_searches_return_the_count_and_the_datasets(
    serve: Serve, asking: Configure, recorded: Recorded, name: str
) -> None:
    answer, sent = recorded(name)
    with asking(serve(lambda _: answer)):
        check_found(await search_datasets(rows=100), sent, 100)


@pytest.mark.promise("CKN-8", "CKN-6")
@pytest.mark.parametrize("name", FAULTS)
async def test_errors_of_ckan_are_reported_in_its_own_words(
    serve: Serve, asking: Configure, recorded: Recorded, name: str
) -> None:
    answer, sent = recorded(name)
    with asking(serve(lambda _: answer)):
        fault = await reason_of(next(ask for beginning, ask in ASKED.items() if name.startswith(beginning))())
    code, message = FAULTS[name]
    assert fault.code == code
    assert fault.message.startswith(message)
    assert fault.status == answer.status
    if isinstance(sent, dict):
        assert fault.type == sent["error"]["__type"]
        assert fault.fields == ({k: v for k, v in sent["error"].items() if isinstance(v, list)} or None)


@pytest.mark.promise("CKN-8", "CKN-3", "CKN-4")
@pytest.mark.parametrize("name", NAMES)
async def test_lists_of_names_are_returned_unchanged(
    serve: Serve, asking: Configure, recorded: Recorded, name: str
) -> None:
    answer, sent = recorded(name)
    with asking(serve(lambda _: answer)):
        listed = await (list_tags() if name.startswith("tag") else list_groups())
    assert listed.results == sent["result"]


@pytest.mark.promise("CKN-8", "CKN-3")
@pytest.mark.parametrize("name", OBJECTS)
async def test_lists_with_all_fields_return_name_title_description_and_count_of_each(
    serve: Serve, asking: Configure, recorded: Recorded, name: str
) -> None:
    answer, sent = recorded(name)
    with asking(serve(lambda _: answer)):
        listed = await list_groups(all_fields=True, organizations=name.startswith("organization"))
    fields = ("name", "display_name", "description", "package_count")
    told = [item.model_dump() for item in listed.results if isinstance(item, Group)]
    assert told == [{field: group[field] for field in fields} for group in sent["result"]]


@pytest.mark.promise("CKN-8", "CKN-2")
async def test_details_omit_nothing(serve: Serve, asking: Configure, recorded: Recorded) -> None:
    answer, sent = recorded("package_show_ok")
    with asking(serve(lambda _: answer)):
        details = await get_dataset_details(id="flydata")
    assert contains(details.model_dump(mode="json"), {"success": True, "result": sent["result"]})


@pytest.mark.promise("CKN-8", "CKN-4")
async def test_counts_of_tags_come_from_the_facets_of_a_search(
    serve: Serve, asking: Configure, recorded: Recorded
) -> None:
    tags, sent_tags = recorded("tag_list_all_fields")
    search, sent_search = recorded("package_search_facets")
    with asking(serve(lambda asked: tags if asked.path.endswith("tag_list") else search)):
        listed = (await list_tags(all_fields=True)).results
    counts = sent_search["result"]["facets"]["tags"]
    told = {tag.name: tag.count for tag in listed if isinstance(tag, TagCount)}
    assert told == {tag["name"]: counts.get(tag["name"], 0) for tag in sent_tags["result"]}
    assert max(told.values()) == 44


@pytest.mark.promise("CKN-8")
async def test_a_portal_returns_its_version(serve: Serve, asking: Configure, recorded: Recorded) -> None:
    answer, sent = recorded("status_show")
    web = serve(lambda _: answer)
    with asking(web):
        said = await status()
    assert (said.ckan_version, said.base_url) == (sent["result"]["ckan_version"], f"{web.url}/api/3")


@pytest.mark.promise("CKN-1")
async def test_data_gov_uks_search_is_parsed(serve: Serve, asking: Configure, alphagov: Recorded) -> None:
    answer, sent = alphagov("package_search")
    with asking(serve(lambda _: answer)):
        check_found(await search_datasets(), sent, 10)


@pytest.mark.promise("CKN-2")
async def test_data_gov_uks_dataset_is_returned_in_full(serve: Serve, asking: Configure, alphagov: Recorded) -> None:
    answer, sent = alphagov("package_show")
    with asking(serve(lambda _: answer)):
        details = await get_dataset_details(id="seabed")
    assert isinstance(details, Details)
    assert contains(details.model_dump(mode="json")["result"], sent["result"])


@pytest.mark.promise("CKN-3")
async def test_data_gov_uks_organizations_are_listed(serve: Serve, asking: Configure, alphagov: Recorded) -> None:
    answer, sent = alphagov("organization_list")
    with asking(serve(lambda _: answer)):
        assert (await list_groups(organizations=True)).results == sent["result"]


@pytest.mark.promise("CKN-6")
@pytest.mark.parametrize("name", ["organization_show", "package_list"])
async def test_an_answer_to_another_request_has_another_shape(
    serve: Serve, asking: Configure, alphagov: Recorded, name: str
) -> None:
    answer, _ = alphagov(name)
    with asking(serve(lambda _: answer)):
        fault = await reason_of(search_datasets())
    assert fault.code == "unexpected_shape"
