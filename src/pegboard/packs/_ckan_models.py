"""What CKAN portals say, and what the tools of `ckan` give.

Answers are validated by these models, and the tools' output schemas are read from them.

Portals leave out fields, fill them with null and add fields of their own, so only what a thing can't be without is
required, and what is not known of a dataset is passed on as it came.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

Rows = Annotated[int, Field(ge=1, le=100)]
"""How many to give."""
Natural = Annotated[int, Field(ge=0)]
"""How many to leave out, or to give at most."""
Id = Annotated[str, Field(min_length=1)]
"""An id or a name."""


class Model(BaseModel):
    """Data that is passed on; fields of others' are left out."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class Open(Model):
    """Data that is passed on with whatever else the portal says of it."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class Tag(Open):
    """A tag of a dataset."""

    name: str
    display_name: str | None = None


class Organization(Open):
    """Who publishes a dataset."""

    name: str | None = None
    title: str | None = None
    id: str | None = None
    description: str | None = None


class Resource(Open):
    """A file or a service that belongs to a dataset."""

    name: str | None = None
    format: str | None = None
    url: str | None = None
    description: str | None = None
    id: str | None = None
    mimetype: str | None = None
    size: int | float | str | None = None
    """Bytes, as far as the publisher says so."""
    created: str | None = None
    last_modified: str | None = None


class Extra(Open):
    """A note of the publisher's."""

    key: str
    value: JsonValue = None


class Topic(Open):
    """A group that a dataset is in."""

    name: str | None = None
    title: str | None = None


class Dataset(Open):
    """All that the portal says of a dataset."""

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


class Group(Model):
    """A group of datasets, or an organization that publishes some."""

    name: str
    display_name: str | None = None
    description: str | None = None
    package_count: int | None = None
    """How many datasets it has."""


class FreeTag(Model):
    """A tag as the portal lists it."""

    name: str
    display_name: str | None = None


class Count(Model):
    """How many datasets have something in common."""

    name: str
    count: int


class Facet(Model):
    """What datasets have in common."""

    items: list[Count]


class Page(Model):
    """What a search finds."""

    count: int
    results: list[Dataset]
    facets: dict[str, dict[str, int]] | None = None
    search_facets: dict[str, Facet] | None = None

    def counts(self, field: str) -> dict[str, int] | None:
        """Gives how many datasets have each value of a field; None where the portal doesn't say."""
        if self.facets and field in self.facets:
            return self.facets[field]
        if self.search_facets and field in self.search_facets:
            return {item.name: item.count for item in self.search_facets[field].items}
        return None


class Site(Model):
    """What a portal says of itself."""

    ckan_version: str
    site_title: str | None = None
    site_url: str | None = None
    extensions: list[str] | None = None


class Hit(BaseModel):
    """A dataset that was found."""

    title: str
    organization: str | None
    """Who publishes it."""
    tags: list[str]
    summary: str
    """The beginning of its description."""
    id: str


class Found(BaseModel):
    """What a search found."""

    success: Literal[True] = True
    count: int
    """How many datasets there are in all."""
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
    """A tag with its use."""

    name: str
    display_name: str
    count: int
    """How many datasets have it."""


class Tags(BaseModel):
    """Tags, as names or as objects."""

    success: Literal[True] = True
    results: list[str] | list[TagCount]


class Status(BaseModel):
    """A portal that can be reached."""

    success: Literal[True] = True
    base_url: str
    """Where its API is."""
    ckan_version: str
    site_title: str | None
    site_url: str | None
    extensions: list[str]


class Fault(BaseModel):
    """Why it failed."""

    message: str
    code: str
    """The kind of failure in one word, such as `not_found` or `timeout`."""
    status: int | None = None
    """The HTTP status, where there was an answer."""
    type: str | None = None
    """What CKAN calls it."""
    fields: dict[str, list[str]] | None = None
    """What is wrong with each parameter, in CKAN's words."""
    retry_after: float | None = None
    """Seconds that the portal asks to wait."""


class Failure(BaseModel):
    """What the tools give as data when they fail."""

    success: Literal[False] = False
    error: Fault


class Settings(BaseModel):
    """Which portal is asked, and how: `[packs.ckan]` in the configuration."""

    model_config = ConfigDict(frozen=True)

    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/?#]+[^\s?#]*$")] = "https://data.gov.il/api/3"
    # The portal that is asked unless configured answers 403 to programs that don't call themselves so.
    user_agent: Annotated[str, Field(pattern=r"^[ -~]+$")] = "datagov-external-client Pegboard"
    timeout: Annotated[float, Field(gt=0)] = 15.0
    """Seconds that one request may take."""
    api_key: Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[!-~]+$")] | None = Field(
        None, repr=False
    )
    """What shows who asks; None to ask as anybody."""
