"""Doing one thing for many items at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import Any, TypeVar, cast  # Any: what a function makes of an item may be anything

from pegboard.sdk.failure import ToolFailed
from pegboard.sdk.host import progress
from pegboard.sdk.invocation import resolved

ItemT = TypeVar("ItemT")


def batch_execute(
    items: Iterable[ItemT | tuple[ItemT, str]], func: Callable[[ItemT], Any], *, max_workers: int = 8
) -> str:
    """Runs a function on every item at once, and puts what comes of it into one text.

    Each item has a section of its own, in the order of the items: `=== LABEL ===`, and below it what the function
    returned, text as it is and anything else as JSON. Where it raised, the section tells the error. While it runs,
    whoever watches the call sees how many items are done.

    Args:
        items: Values, or `(value, label)` tuples; a value without a label is its own.
        func: Takes a value; it may be asynchronous, and is run in several threads.
        max_workers: How many run at once, at most.
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
        except BaseException:  # a cancelled call shouldn't begin further items
            executor.shutdown(wait=False, cancel_futures=True)
            raise
        return "\n\n".join(f"=== {labels[future]} ===\n{future.result()}" for future in futures)


def normalize_items(items: Iterable[ItemT | tuple[ItemT, str]]) -> list[tuple[ItemT, str]]:
    """Gives every item a label: `["a"]` becomes `[("a", "a")]`; tuples are kept as they are."""
    # a cast, as the type can't say that items which are tuples have two parts
    return [
        cast("tuple[ItemT, str]", item) if isinstance(item, tuple) else (item, " ".join(str(item).split()))
        for item in items
    ]


def _text_of(func: Callable[[ItemT], Any], value: ItemT) -> str:
    try:
        result = resolved(func(value))
        if isinstance(result, str):
            return result
        return json.dumps(result, ensure_ascii=False, indent=2, default=str)
    except ToolFailed as failed:
        return f"Error: {failed}"
    except BaseException as error:  # noqa: BLE001 - an item that raises `SystemExit`, say, must not harm the others
        return f"Error: {type(error).__name__}: {error}"
