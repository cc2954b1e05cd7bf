"""Concurrent execution of one function for many items."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import Any, TypeVar, cast  # Any: a function may return any value

from pegboard.sdk.failure import ToolFailed
from pegboard.sdk.host import progress
from pegboard.sdk.invocation import resolve
from pegboard.sdk.values import NotSerializableError, encode

ItemT = TypeVar("ItemT")


def batch_execute(
    items: Iterable[ItemT | tuple[ItemT, str]], func: Callable[[ItemT], Any], *, max_workers: int = 8
) -> str:
    """Call a function for every item in a thread pool and join the results into one text.

    Each item gets a section, in the order of the items: a line `=== LABEL ===`, then the result. Text is included as
    it is, any other value as JSON, like the result of a tool, and an exception as `Error: MESSAGE`: one failing item
    doesn't stop the others. `batch_execute` reports progress after each item.

    Args:
        items: Values, or `(value, label)` tuples. Without a label, the value itself is the label.
        func: Function that accepts one value. It may be asynchronous, and must be thread-safe.
        max_workers: Maximum number of items processed concurrently.

    Returns:
        The sections, separated by blank lines; an empty string if `items` is empty.
    """
    labelled = normalize_items(items)
    if not labelled:
        return ""
    with ThreadPoolExecutor(max_workers, "pegboard-batch") as executor:
        futures = [executor.submit(copy_context().run, _text_of, func, value) for value, _ in labelled]
        labels = {future: label for future, (_, label) in zip(futures, labelled, strict=True)}
        try:
            for done, future in enumerate(as_completed(futures), 1):
                progress(done, len(futures), labels[future])
        except BaseException:  # a cancelled call must not start further items
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        return "\n\n".join(f"=== {labels[future]} ===\n{future.result()}" for future in futures)


def normalize_items(items: Iterable[ItemT | tuple[ItemT, str]]) -> list[tuple[ItemT, str]]:
    """Return `(value, label)` tuples: `["a"]` becomes `[("a", "a")]`, and tuples stay as they are."""
    # the type of `items` can't express that every tuple is a pair
    return [
        cast("tuple[ItemT, str]", item) if isinstance(item, tuple) else (item, " ".join(str(item).split()))
        for item in items
    ]


def _text_of(func: Callable[[ItemT], Any], value: ItemT) -> str:
    try:
        result = resolve(func(value))
        if isinstance(result, str):
            return result
        return json.dumps(json.loads(encode(result)), ensure_ascii=False, indent=2)
    except (ToolFailed, NotSerializableError) as failed:
        return f"Error: {failed}"
    except BaseException as error:  # noqa: BLE001 - one item's `SystemExit` must not end the others
        return f"Error: {type(error).__name__}: {error}"
