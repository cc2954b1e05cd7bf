"""Masks for the secrets of a form whose content is edited as JSON."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from pegboard.data.json_text import write
from pegboard.data.mask import MASK
from pegboard.data.pointer import pointer, resolve
from pegboard.errors import FormFaults
from pegboard.models import Fault

if TYPE_CHECKING:
    from pydantic import JsonValue

    from pegboard.forms.fields import Field


class Masks:
    """Masks by secret. A mask always hides the same secret, wherever an edit moves it."""

    def __init__(self) -> None:
        self._masks: dict[str, str] = {}
        self._secrets: dict[str, JsonValue] = {}

    def hide(self, draft: JsonValue, masked: JsonValue) -> JsonValue:
        """Return a draft with a different mask for each secret.

        Args:
            draft: The draft with its secrets.
            masked: The same draft with `MASK` for every secret.
        """
        if isinstance(draft, dict) and isinstance(masked, dict):
            return {key: self.hide(value, masked[key]) for key, value in draft.items()}
        if isinstance(draft, list) and isinstance(masked, list):
            return [self.hide(*values) for values in zip(draft, masked, strict=True)]
        return self._mask_of(draft) if masked == MASK else masked

    def reveal(self, edited: JsonValue, field: Field) -> JsonValue:
        """Return an edited draft with the secrets that its masks hide.

        Args:
            edited: The draft after editing.
            field: Field of the draft, before it is updated.

        Raises:
            FormFaults: A mask hides no known secret, or its new position would show or send the secret unmasked.
        """
        found: dict[str, str] = {}
        plain = write(field.draft())

        def revealed(value: JsonValue, path: str) -> JsonValue:
            if isinstance(value, dict):
                return {key: revealed(inner, path + pointer(key)) for key, inner in value.items()}
            if isinstance(value, list):
                return [revealed(inner, path + pointer(index)) for index, inner in enumerate(value)]
            if not isinstance(value, str) or MASK not in value:
                return value
            if value in self._secrets:
                found[path] = value
            elif write(value) not in plain:
                raise _moved(field, path, value)
            return self._secrets.get(value, value)

        whole = revealed(edited, "")
        if found:
            trial = copy(field)
            trial.clear()
            trial.load(whole)
            masked = trial.draft(masked=True)
            for path, mask in found.items():
                if resolve(masked, path) != (MASK,):
                    raise _moved(field, path, mask)
        return whole

    def _mask_of(self, secret: JsonValue) -> str:
        written = write(secret)
        if written not in self._masks:
            count = len(self._masks)
            mask = f"{MASK} {count + 1}" if count else MASK
            self._masks[written], self._secrets[mask] = mask, secret
        return self._masks[written]


def _moved(field: Field, path: str, mask: str) -> FormFaults:
    message = f"{mask} hides a value that was moved or changed. Put it back, or enter a value"
    return FormFaults((Fault(path=field.path + path, message=message),))
