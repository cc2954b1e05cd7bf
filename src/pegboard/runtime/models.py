"""Language models: the configured one, those of providers and of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from pegboard.errors import ModelError

if TYPE_CHECKING:
    from pegboard.ask.providers import LocalServer, ProviderModel
    from pegboard.models.conversation import Usage
    from pegboard.models.model_requirements import ModelNeeds
    from pegboard.ports import Model
    from pegboard.runtime.parts import Parts


def _no_key(_: str) -> None:
    """Find no key."""


class Models:
    """The language models that can be asked.

    Args:
        parts: The parts of the runtime.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._models: dict[tuple[str, str | None, bool], ProviderModel] = {}

    async def close(self) -> None:
        """Close the connections to models."""
        for model in self._models.values():
            await model.close()

    def get(self, name: str | None = None, base_url: str | None = None, *, send_key: bool = False) -> Model:
        """Return a language model: the same one for the same name and server, with the connections that it keeps.

        Args:
            name: `provider:model`, or `offline`; the configured one if left out, without one the offline one.
            base_url: Where its server listens, if not where the configuration says.
            send_key: Whether the provider's key goes to `base_url` although it isn't the configured server: only
                where the user named it for this purpose.

        Raises:
            ModelError: There is no such provider, this can't be the name of one of its models, or the configuration
                of models can't be used.
        """
        from pegboard.ask.offline import NAME, OfflineModel

        name = name or self._parts.settings.model.name or NAME
        if name == NAME:
            return OfflineModel()
        from pegboard.ask import providers

        where = self._base_url(name, base_url)
        has_key = send_key or self._is_configured(name, where)
        known = self._models.get((name, where, has_key))
        if known is None:
            is_of_folder = self._parts.settings.is_base_url_from_folder(where)
            key = _no_key if not has_key else self._folder_key if is_of_folder else self._key
            known = providers.model(name, base_url=where, key=key)
        return self._models.setdefault((name, where, has_key), known)

    def _base_url(self, name: str, given: str | None) -> str | None:
        """Return the base URL of a model; only the provider that it was configured for gets the configured one.

        Raises:
            ModelError: `not_configured`, if the configured one can't be read: the question would go elsewhere.
        """
        blocked = self._parts.settings.loaded.model_blocked
        if blocked is not None and not given:
            message = f"No model is used because the configuration of models can't be used: {blocked}"
            raise ModelError(message, code="not_configured")
        return given or self._configured_url(name)

    def _configured_url(self, name: str) -> str | None:
        """Return the configured base URL if it is meant for the provider of a model."""
        from pegboard.ask.providers.endpoint import is_own_provider

        set_ = self._parts.settings.model
        if (set_.name is None or ":" not in set_.name) and is_own_provider(name.partition(":")[0].strip()):
            return None
        return self._parts.settings.base_url_of(name) or None

    def _is_configured(self, name: str, where: str | None) -> bool:
        """Whether a provider's key is configured for a server: its usual one, or the one that the configuration names.

        Raises:
            ModelError: This is not the name of a model, or not a URL.
        """
        if where is None:
            return True
        from pegboard.ask.providers.endpoint import endpoint, origin

        configured = self._configured_url(name)
        try:
            usual = endpoint(name, configured)
        except ModelError:
            return False  # a provider that isn't known by name and not configured
        return origin(endpoint(name, where).base_url) == origin(usual.base_url)

    def preload(self) -> None:
        """Loads the library that talks to models, as the first turn would; blocks for a second."""
        from pegboard.ask.providers import preload

        preload()

    async def local_servers(self) -> AsyncGenerator[LocalServer]:
        """Looks for model servers on this machine, and yields each with its models as soon as it answers."""
        import asyncio

        await asyncio.to_thread(__import__, "pegboard.ask.providers")
        from pegboard.ask.providers import discover
        from pegboard.ask.providers.servers import USUAL_PORTS

        looks = [asyncio.create_task(discover({provider: port})) for provider, port in USUAL_PORTS.items()]
        try:
            for look in asyncio.as_completed(looks):
                for server in await look:
                    yield server
        finally:
            for task in looks:
                task.cancel()
            await asyncio.gather(*looks, return_exceptions=True)

    def providers(self) -> tuple[str, ...]:
        """Gives the names of the providers that are known."""
        from pegboard.ask.providers.endpoint import PROVIDERS

        return tuple(PROVIDERS)

    def requirements(self, name: str, base_url: str | None = None) -> ModelNeeds:
        """Says what a model needs, and what of that is there; blocks, and up to 30 seconds for a locked keyring.

        Args:
            name: `provider:model`, or `offline`.
            base_url: As of `get`.

        Raises:
            ModelError: This is no model's name, or there is no such provider.
        """
        from pegboard.ask.offline import NAME
        from pegboard.ask.providers.requirements import needs
        from pegboard.models.model_requirements import ModelNeeds

        if name == NAME:
            return ModelNeeds(title="Built in", is_local=True)
        where = self._base_url(name, base_url)
        has_key = self._is_configured(name, where)
        of_folder = self._parts.settings.is_base_url_from_folder(where)
        return needs(
            name, where, lambda secret: self._parts.find_secret(secret, of_folder=of_folder)[0] if has_key else None
        )

    def price(self, model: str, usage: Usage) -> float | None:
        """Gives what a model was paid for in US dollars, where its prices are known; blocks while they are loaded.

        Args:
            model: `provider:model`.
            usage: What it took.
        """
        from pegboard.ask.providers.price import price

        return price(model, usage)

    def tool_names(self) -> dict[str, str]:
        """Gives the names of the tools that may be used by those that a model has for them."""
        from pegboard.ask.offer import Offer
        from pegboard.ask.result_text import MORE

        return Offer(self._parts.usable(), taken=[MORE]).names

    @property
    def system_prompt(self) -> str:
        """What a model is told beforehand, unless a session says otherwise."""
        from pegboard.ask.conversation import SYSTEM

        return SYSTEM

    def reads_text_calls(self, model: str) -> bool:
        """Whether the model is configured to write its calls as text; without a configured name, any is."""
        set_ = self._parts.settings.model
        return set_.text_calls and set_.name in {None, model}

    def _folder_key(self, name: str) -> str | None:
        """Return a provider's key for a host that the working directory's configuration names."""
        return self._key(name, of_folder=True)

    def _key(self, name: str, *, of_folder: bool = False) -> str | None:
        """Return a provider's key, and redact it everywhere from now on."""
        found = self._parts.secrets.find(name, of_folder=of_folder)
        if found is None:
            return None
        self._parts.redaction.add({name: found.reveal()})
        return found.reveal()
