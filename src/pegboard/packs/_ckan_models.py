"""Models of CKAN's answers and of the results of the `ckan` tools.

Answers are validated by these models, and the tools' output schemas are generated from them.

Portals omit fields, fill them with null and add fields of their own. So only essential fields are required, and unknown
fields of a dataset are passed on.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

Rows = Annotated[int, Field(ge=1, le=100)]
"""Maximum number of results."""
Natural = Annotated[int, Field(ge=0)]
"""Number of items to skip, or maximum number of items."""
Id = Annotated[str, Field(min_length=1)]
"""An id or a name."""


class CkanModel(BaseModel):
    """Data that is passed on without unknown fields."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class OpenModel(CkanModel):
    """Data that is passed on with unknown fields."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class Tag(OpenModel):
    """A tag of a dataset."""

    name: str
    display_name: str | None = None


class Organization(OpenModel):
    """Publisher of a dataset."""

    name: str | None = None
    title: str | None = None
    id: str | None = None
    description: str | None = None


class Resource(OpenModel):
    """A file or service of a dataset."""

    name: str | None = None
    format: str | None = None
    url: str | None = None
    description: str | None = None
    id: str | None = None
    mimetype: str | None = None
    size: int | float | str | None = None
    """Size in bytes, if the publisher states it."""
    created: str | None = None
    last_modified: str | None = None


class Extra(OpenModel):
    """A custom field of the publisher."""

    key: str
    value: JsonValue = None


class Topic(OpenModel):
    """A group that contains a dataset."""

    name: str | None = None
    title: str | None = None


class Dataset(OpenModel):
    """All metadata of a dataset."""

    id: str
    name: str | None = None
    title: str | None = None
    notes: str | None = None
    url: str | None = None
    license_title: str | None = None
    author: str | None = None
    maintainer: str | None = None
    version: str | None = None
    metadata_created: str | None = None
    metadata_modified: str | None = None
    organization: Organization | None = None
    resources: list[Resource] | None = None
    tags: list[Tag] | None = None
    groups: list[Topic] | None = None
    extras: list[Extra] | None = None


class Group(CkanModel):
    """A group of datasets, or an organization that publishes datasets."""

    name: str
    display_name: str | None = None
    description: str | None = None
    package_count: int | None = None
    """Number of datasets."""


class FreeTag(CkanModel):
    """A tag as the portal lists it."""

    name: str
    display_name: str | None = None


class FacetCount(CkanModel):
    """Number of datasets with one value of a field."""

    name: str
    count: int


class Facet(CkanModel):
    """Numbers of datasets by the values of a field."""

    items: list[FacetCount]


class SearchPage(CkanModel):
    """Result of a search."""

    count: int
    results: list[Dataset]
    facets: dict[str, dict[str, int]] | None = None
    search_facets: dict[str, Facet] | None = None

    def counts(self, field: str) -> dict[str, int] | None:
        """Return the number of datasets for each value of a field; None if the portal doesn't return it."""
        if self.facets and field in self.facets:
            return self.facets[field]
        if self.search_facets and field in self.search_facets:
            return {item.name: item.count for item in self.search_facets[field].items}
        return None


class Site(CkanModel):
    """Description of a portal."""

    ckan_version: str
    site_title: str | None = None
    site_url: str | None = None
    extensions: list[str] | None = None


class Hit(BaseModel):
    """A dataset in the result of a search."""

    title: str
    organization: str | None
    """Its publisher."""
    tags: list[str]
    summary: str
    """Beginning of its description."""
    id: str


class SearchResult(BaseModel):
    """Result of a search."""

    success: Literal[True] = True
    count: int
    """Number of all matching datasets."""
    results: list[Hit]


class Details(BaseModel):
    """One dataset."""

    success: Literal[True] = True
    result: Dataset


class Groups(BaseModel):
    """Groups or organizations, as names or as objects."""

    success: Literal[True] = True
    results: list[str] | list[Group]


class TagCount(BaseModel):
    """A tag with its number of datasets."""

    name: str
    display_name: str
    count: int
    """Number of datasets."""


class Tags(BaseModel):
    """Tags, as names or as objects."""

    success: Literal[True] = True
    results: list[str] | list[TagCount]


class PortalStatus(BaseModel):
    """A portal that can be reached."""

    success: Literal[True] = True
    base_url: str
    """Address of its API."""
    ckan_version: str
    site_title: str | None
    site_url: str | None
    extensions: list[str]


class FailureReason(BaseModel):
    """Reason for a failure."""

    message: str
    code: str
    """Kind of failure in one word, such as `not_found` or `timeout`."""
    status: int | None = None
    """The HTTP status, if there was an answer."""
    type: str | None = None
    """CKAN's name of the error."""
    fields: dict[str, list[str]] | None = None
    """Parameter → its errors, in CKAN's words."""
    retry_after: float | None = None
    """Seconds that the portal asks to wait."""


class Failure(BaseModel):
    """Data of a failed call."""

    success: Literal[False] = False
    error: FailureReason


class CkanSettings(BaseModel):
    """The portal and its options: `[packs.ckan]` in the configuration."""

    model_config = ConfigDict(frozen=True)

    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+[^\s?#]*$")] = "https://data.gov.il/api/3"
    # The default portal answers 403 to other user agents.
    user_agent: Annotated[str, Field(pattern=r"^[ -~]+$")] = "datagov-external-client Pegboard"
    timeout: Annotated[float, Field(gt=0)] = 15.0
    """Timeout of one request, in seconds."""
    api_key: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[!-~]+$")] | None = Field(
        None, repr=False
    )
    """Key for private datasets; None for public access."""
