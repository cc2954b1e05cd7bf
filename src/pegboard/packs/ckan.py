"""Search open data: datasets of any CKAN portal, such as data.gov.il.

Set the portal under `[packs.ckan]` in the configuration: `base_url`, `user_agent` and `timeout` (seconds for one
request). Set the secret `CKAN_API_KEY` to access private datasets.
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from textwrap import shorten
from typing import Any, ParamSpec, TypeVar  # Any: the type that a coroutine accepts

from pydantic import ConfigDict, TypeAdapter, ValidationError, validate_call

from pegboard.sdk import aliases, get_config, get_secret, hints

from ._ckan import Params, Portal, connect, escaped, failure
from ._ckan_models import (
    CkanSettings,
    Dataset,
    Details,
    FreeTag,
    Group,
    Groups,
    Hit,
    Id,
    Natural,
    PortalStatus,
    Rows,
    SearchPage,
    SearchResult,
    Site,
    TagCount,
    Tags,
)

_DATASET, _PAGE, _SITE = TypeAdapter(Dataset), TypeAdapter(SearchPage), TypeAdapter(Site)
_NAMES, _GROUPS, _TAGS = TypeAdapter(list[str]), TypeAdapter(list[Group]), TypeAdapter(list[FreeTag])

_SUMMARY = 240
"""Length of a summary in characters."""
_EVERYTHING = frozenset({"", "*", "*:*"})
"""Common queries for all datasets."""

_validated = validate_call(config=ConfigDict(strict=True))
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _strict(function: Callable[_P, Coroutine[Any, Any, _R]]) -> Callable[_P, Coroutine[Any, Any, _R]]:
    """Check arguments: raise `TypeError` for positional ones, pydantic's `ValidationError` for invalid ones."""
    checked = _validated(function)

    @wraps(function)
    async def strict(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if args:
            raise TypeError(
                f"{function.__name__}() takes keyword arguments only, but {len(args)} positional were given"
            )
        return await checked(*args, **kwargs)

    return strict


@hints(read_only=True, destructive=False, idempotent=True, open_world=True, timeout=60)
@aliases("searchDatasets", raw_query="rawQuery")
@_strict
async def search_datasets(
    *, query: str | None = None, rows: Rows = 10, start: Natural = 0, sort: str | None = None, raw_query: bool = False
) -> SearchResult:
    """Search the datasets of an open-data portal.

    Args:
        query: Words to search for, as plain text. If unset, all datasets match.
        rows: Maximum number of datasets to return.
        start: Number of matching datasets to skip.
        sort: Field and direction, such as `metadata_modified desc`. If unset, the best matches come first.
        raw_query: Whether the query uses Solr's syntax: `title:water AND organization:cbs`.

    Returns:
        The number of all matching datasets, and the datasets from `start` on.
    """
    params: dict[str, str | int] = {"rows": rows, "start": start}
    if query is not None and query.strip() not in _EVERYTHING:
        params["q"] = query if raw_query else escaped(query.strip())
    if sort is not None:
        params["sort"] = sort
    page = await (await _portal()).get("package_search", params, _PAGE)
    return SearchResult(count=page.count, results=[_hit(dataset) for dataset in page.results[:rows]])


@hints(read_only=True, destructive=False, idempotent=True, open_world=True, timeout=60)
@aliases("getDatasetDetails")
@_strict
async def get_dataset_details(*, id: Id) -> Details:  # noqa: A002 - CKAN's name
    """Return all metadata of a dataset of an open-data portal.

    Args:
        id: Id or name of the dataset.

    Returns:
        The dataset with its organization, tags and resources.
    """
    return Details(result=await (await _portal()).get("package_show", {"id": id}, _DATASET))


@hints(read_only=True, destructive=False, idempotent=True, open_world=True, timeout=120)
@aliases("listGroups", order_by="orderBy", all_fields="allFields")
@_strict
async def list_groups(
    *,
    order_by: str | None = None,
    limit: Natural | None = None,
    offset: Natural | None = None,
    all_fields: bool = False,
    organizations: bool = False,
) -> Groups:
    """List the groups of datasets of an open-data portal, or its organizations.

    Args:
        order_by: Field, and optionally a direction: `name`, `title`, `package_count desc`.
        limit: Maximum number of groups to return. If unset, all are returned.
        offset: Number of groups to skip.
        all_fields: Whether to return the title, the description and the number of datasets of each, not only names.
        organizations: Whether to list the organizations that publish datasets instead.

    Returns:
        Names, or objects if `all_fields` is set.
    """
    portal = await _portal()
    action = "organization_list" if organizations else "group_list"
    params: Params = {} if order_by is None else {"sort": order_by}
    if not all_fields:
        return Groups(results=await portal.pages(action, params, _NAMES, str, limit, offset or 0))
    params = {**params, "all_fields": "true"}
    return Groups(results=await portal.pages(action, params, _GROUPS, _name, limit, offset or 0))


@hints(read_only=True, destructive=False, idempotent=True, open_world=True, timeout=60)
@aliases("listTags", all_fields="allFields")
@_strict
async def list_tags(*, query: str | None = None, all_fields: bool = False) -> Tags:
    """List the tags of datasets of an open-data portal.

    Args:
        query: Part of a tag's name; case is ignored. If unset, all tags are listed.
        all_fields: Whether to return the number of datasets with each tag, not only names.

    Returns:
        Names, or objects if `all_fields` is set.
    """
    portal = await _portal()
    params: Params = {"query": query} if query else {}
    if not all_fields:
        return Tags(results=await portal.get("tag_list", params, _NAMES))
    tags = await portal.get("tag_list", {**params, "all_fields": "true"}, _TAGS)
    facets: Params = {"rows": 0, "facet.field": '["tags"]', "facet.limit": -1}
    counts = (await portal.get("package_search", facets, _PAGE)).counts("tags")
    if counts is None:
        raise failure("The portal returned no numbers of datasets for tags.", "unexpected_shape")
    return Tags(
        results=[
            TagCount(name=tag.name, display_name=tag.display_name or tag.name, count=counts.get(tag.name, 0))
            for tag in tags
        ]
    )


@hints(read_only=True, destructive=False, idempotent=True, open_world=True, timeout=60)
async def status() -> PortalStatus:
    """Check whether the open-data portal can be reached, and return its version of CKAN.

    Returns:
        The portal's description of itself.
    """
    portal = await _portal()
    site = await portal.get("status_show", {}, _SITE)
    return PortalStatus(
        base_url=portal.base_url,
        ckan_version=site.ckan_version,
        site_title=site.site_title,
        site_url=site.site_url,
        extensions=site.extensions or [],
    )


async def _portal() -> Portal:
    """Return the configured portal."""
    said = {key: get_config(key) for key in ("base_url", "user_agent", "timeout")}
    said["api_key"] = get_secret("CKAN_API_KEY", extra=True)
    try:
        settings = CkanSettings.model_validate({key: value for key, value in said.items() if value is not None})
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False, include_input=False)
        listed = "; ".join(f"{fault['loc'][0]}: {fault['msg']}" for fault in wrong)
        raise failure(f"`[packs.ckan]` in the configuration is invalid: {listed}.", "invalid_config") from None
    return await connect(settings)


def _hit(dataset: Dataset) -> Hit:
    publisher = dataset.organization
    return Hit(
        id=dataset.id,
        title=dataset.title or dataset.name or dataset.id,
        organization=(publisher.title or publisher.name) if publisher else None,
        tags=[tag.name for tag in dataset.tags or ()],
        summary=shorten(dataset.notes or "", _SUMMARY, placeholder="…"),
    )


def _name(group: Group) -> str:
    return group.name
