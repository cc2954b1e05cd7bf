"""API of a shop for bicycle parts: users, orders, stock and discounts. The data is invented and never changes."""

from datetime import date, timedelta
from typing import Annotated, Literal, TypedDict
from zlib import crc32

from pydantic import Field

from pegboard.sdk import ToolFailed, hints

TODAY = date(2026, 3, 2)
PER_PAGE = 25

_FIRST = ["Ada", "Bruno", "Chiara", "Dmitri", "Elif", "Farid", "Grace", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Mateo"]
_LAST = ["Abe", "Bauer", "Costa", "Dahl", "Eze", "Fischer", "Garcia", "Haddad", "Ito", "Jansen", "Kaya", "Lopez"]
_CITIES = ["Aarhus", "Bilbao", "Cork", "Dresden", "Espoo", "Ghent", "Izmir", "Kraków", "Lyon", "Malmö", "Porto"]
_STREETS = ["Harbour Street", "Mill Lane", "Station Road", "Old Market", "Church Square", "River Walk", "North Gate"]
_PARTS = [
    *("bottom bracket", "brake lever", "brake pads", "cassette", "chain", "crank set", "derailleur", "disc rotor"),
    *("fork", "freewheel", "front light", "grips", "handlebar", "headset", "hub", "inner tube", "mudguard"),
    *("pannier rack", "pedals", "rim", "saddle", "seat post", "shifter", "stem", "tyre"),
]
_MAKES = ["Alder", "Birch", "Cedar", "Hazel", "Linden"]
_SKUS = {f"{part.replace(' ', '-')}-{make}".upper(): f"{part}, {make}" for part in _PARTS for make in _MAKES}
_USERS, _ORDERS = 400, 900

Status = Literal["open", "shipped", "late", "delivered", "cancelled"]


class User(TypedDict):
    """A customer."""

    id: int
    name: str
    email: str
    city: str
    customer_since: str
    newsletter: bool
    orders: list[int]
    """Order numbers of the customer."""


class Item(TypedDict):
    """A line of an order."""

    sku: str
    part: str
    quantity: int
    unit_price: float


class Order(TypedDict):
    """An order of a customer."""

    id: int
    user_id: int
    status: Status
    placed: str
    promised: str
    """Promised delivery date. An open order past this date is late."""
    items: list[Item]
    total: float
    ship_to: str
    carrier: str
    note: str


class Orders(TypedDict):
    """One page of orders."""

    orders: list[Order]
    page: int
    pages: int


class Stock(TypedDict):
    """Stock of one part."""

    sku: str
    part: str
    warehouses: dict[str, int]
    available: int
    """Quantity in all warehouses, without reserved parts."""
    reserved: int
    next_delivery: str | None
    """Date of the next delivery; null if none is expected."""


class Discount(TypedDict):
    """A discount code."""

    code: str
    user_id: int
    percent: int
    valid_until: str
    reason: str


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def get_user(*, user_id: int) -> User:
    """Return a customer.

    Args:
        user_id: Customer number, such as 17.
    """
    if not 1 <= user_id <= _USERS:
        raise ToolFailed(f"User {user_id} does not exist.", code="not_found")
    first, last = _one(_FIRST, "first", user_id), _one(_LAST, "last", user_id)
    return {
        "id": user_id,
        "name": f"{first} {last}",
        "email": f"{first}.{last}{user_id}@example.org".lower(),
        "city": _one(_CITIES, "city", user_id),
        "customer_since": (TODAY - timedelta(days=_number(2500, "since", user_id) + 200)).isoformat(),
        "newsletter": _number(3, "newsletter", user_id) == 0,
        "orders": [10_000 + number for number in range(1, _ORDERS + 1) if _user_of(number) == user_id],
    }


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def list_orders(
    *, status: Status | None = None, user_id: int | None = None, page: Annotated[int, Field(ge=1)] = 1
) -> Orders:
    """List orders, newest first, 25 per page.

    Args:
        status: Status of the orders; null for all.
        user_id: Number of the customer; null for all.
        page: Page number, from 1.
    """
    found = [order for order in map(_order, range(_ORDERS, 0, -1)) if status in (None, order["status"])]
    found = [order for order in found if user_id in (None, order["user_id"])]
    pages = max(-(-len(found) // PER_PAGE), 1)
    return {"orders": found[(page - 1) * PER_PAGE : page * PER_PAGE], "page": page, "pages": pages}


@hints(read_only=True, destructive=False, idempotent=True, open_world=False)
def get_inventory(*, sku: str) -> Stock:
    """Return the stock of a part.

    Args:
        sku: Part number, such as "CHAIN-CEDAR".
    """
    part = _SKUS.get(sku)
    if part is None:
        raise ToolFailed(f"Part {sku} does not exist.", code="not_found")
    is_out = _number(6, "out", sku) == 0
    warehouses = {place: 0 if is_out else _number(60, place, sku) for place in ("north", "south", "harbour")}
    reserved = 0 if is_out else _number(5, "reserved", sku)
    expected = TODAY + timedelta(days=_number(40, "expected", sku) + 2)
    return {
        "sku": sku,
        "part": part,
        "warehouses": warehouses,
        "available": max(sum(warehouses.values()) - reserved, 0),
        "reserved": reserved,
        "next_delivery": expected.isoformat() if _number(4, "expects", sku) else None,
    }


@hints(read_only=False, destructive=False, idempotent=True, open_world=False)
def create_discount(*, user_id: int, percent: Annotated[int, Field(ge=1, le=50)], reason: str) -> Discount:
    """Create a discount for a customer's next order; repeating the call returns the same one.

    Args:
        user_id: Customer number.
        percent: Discount in percent.
        reason: Explanation that the customer receives.
    """
    get_user(user_id=user_id)
    return {
        "code": f"{_one(_MAKES, 'code', user_id).upper()}-{user_id:04}-{crc32(reason.encode()) % 10_000:04}",
        "user_id": user_id,
        "percent": percent,
        "valid_until": (TODAY + timedelta(days=90)).isoformat(),
        "reason": reason,
    }


def _order(number: int) -> Order:
    age = (_ORDERS - number) // 6
    placed = TODAY - timedelta(days=age)
    promised = placed + timedelta(days=_number(9, "promised", number) + 5)
    return {
        "id": 10_000 + number,
        "user_id": _user_of(number),
        "status": _status(number, is_due=promised < TODAY),
        "placed": placed.isoformat(),
        "promised": promised.isoformat(),
        "items": (items := [_item(number, line) for line in range(_number(4, "lines", number) + 1)]),
        "total": round(sum(item["quantity"] * item["unit_price"] for item in items), 2),
        "ship_to": f"{_number(140, 'house', number) + 1} {_one(_STREETS, 'street', number)}, "
        + _one(_CITIES, "city", _user_of(number)),
        "carrier": _one(["Post", "Heron Parcels", "Pickup"], "carrier", number),
        "note": "" if _number(5, "note", number) else "Please leave it with the neighbours.",
    }


def _status(number: int, *, is_due: bool) -> Status:
    drawn = _number(100, "status", number)
    if drawn < 4:
        return "cancelled"
    if is_due:
        return "late" if drawn < 13 else "delivered"
    return "shipped" if drawn < 40 else "open"


def _item(order: int, line: int) -> Item:
    sku = _one(list(_SKUS), "sku", order, line)
    price = 5 + _number(11_500, "price", sku) / 100
    return {"sku": sku, "part": _SKUS[sku], "quantity": _number(3, "quantity", order, line) + 1, "unit_price": price}


def _user_of(order: int) -> int:
    return _number(_USERS, "user", order) + 1


def _one(choices: list[str], *of: str | int) -> str:
    return choices[_number(len(choices), *of)]


def _number(below: int, *of: str | int) -> int:
    """Return a pseudo-random number that depends only on `of`."""
    return crc32(repr(of).encode()) % below
