"""Language models: the configured one, those of providers and those on this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from pegboard.errors import ModelError

if TYPE_CHECKING:
    from pegboard.ask.providers import LocalServer, ProviderModel
    from pegboard.models.conversation import Usage
    from pegboard.models.model_requirements import ModelRequirements
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
        self._retired: list[ProviderModel] = []
        """Models that may still answer, but are not asked again."""

    async def close(self) -> None:
        """Close the connections to models."""
        for model in (*self._models.values(), *self._retired):
            await model.close()

    def forget(self) -> None:
        """Build every model anew when it is needed next: which host gets which key may have changed."""
        self._retired += self._models.values()
        self._models = {}

    @asynccontextmanager
    async def closing_retired(self) -> AsyncGenerator[None]:
        """Close the connections to models that are not asked again after the block, unless they still answer."""
        yield
        idle = [model for model in self._retired if not model.is_answering]
        self._retired = [model for model in self._retired if model not in idle]
        for model in idle:
            await model.close()

    async def check(self, name: str, base_url: str | None = None, key: str | None = None) -> None:
        """Send a short question to a model.

        Args:
            name: `provider:model`.
            base_url: As in `get`.
            key: A key that is not stored yet; without it, the stored key is sent only to the configured server.

        Raises:
            ModelError: The model can't be used.
        """
        from pegboard.models.conversation import Prompt, UserMessage

        model: Model = self.get(name, base_url)
        own: ProviderModel | None = None
        if key is not None:
            from pegboard.ask import providers

            self._parts.redaction.add({"the typed key": key})
            model = own = providers.model(name, base_url=self._base_url(name, base_url), key=lambda _: key)
        prompt = Prompt(messages=(UserMessage(text="Answer with OK."),))
        try:
            async with aclosing(model.stream(prompt)) as events:
                async for _ in events:
                    return
        finally:
            if own is not None:
                await own.close()

    def get(self, name: str | None = None, base_url: str | None = None, *, send_key: bool = False) -> Model:
        """Return a language model; the same one for the same name and server, with its open connections.

        Args:
            name: `provider:model`, or `offline`; by default the configured model, or the offline one if none is
                configured.
            base_url: The server's URL; by default the configured one.
            send_key: Whether to send the provider's key to `base_url` even though it isn't the configured server; only
                if the user named it for this purpose.

        Raises:
            ModelError: The name or its provider is unknown, or the configuration of models can't be used.
        """
        name = self._name(name)
        if self.is_offline(name):
            from pegboard.ask.offline import OfflineModel

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

    def is_offline(self, name: str | None = None) -> bool:
        """Return whether `get` returns the offline model for a name."""
        from pegboard.models.model_requirements import OFFLINE

        return self._name(name) == OFFLINE

    def _name(self, name: str | None) -> str:
        from pegboard.models.model_requirements import OFFLINE

        return name or self._parts.settings.model.name or OFFLINE

    def _base_url(self, name: str, given: str | None) -> str | None:
        """Return the base URL of a model; the configured one applies only to the provider that it was configured for.

        Raises:
            ModelError: `not_configured`, if the configured URL can't be read, or the whole file; the default would send
                the question elsewhere.
        """
        blocked = self._parts.settings.loaded.model_blocked
        if blocked is not None:
            message = f"No model was asked because the configuration of models can't be used: {blocked}"
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
        """Return whether a provider's key may go to a server: the provider's own, or the one in the configuration.

        Raises:
            ModelError: The name of the model or the URL is invalid.
        """
        if where is None:
            return True
        from pegboard.ask.providers.endpoint import endpoint, origin

        configured = self._configured_url(name)
        try:
            usual = endpoint(name, configured)
        except ModelError:
            return False  # A provider that isn't known by name and not configured.
        return origin(endpoint(name, where).base_url) == origin(usual.base_url)

    def preload(self) -> None:
        """Import the library that talks to models, as the first turn would; block for a second."""
        from pegboard.ask.providers import preload

        preload()

    async def local_servers(self) -> AsyncGenerator[LocalServer]:
        """Look for model servers on this machine, and yield each with its models as soon as it responds."""
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
        """Return the names of the known providers."""
        from pegboard.ask.providers.endpoint import PROVIDERS

        return tuple(PROVIDERS)

    def requirements(self, name: str, base_url: str | None = None) -> ModelRequirements:
        """Return the requirements of a model and their status; block, up to 30 seconds for a locked keyring.

        Args:
            name: `provider:model`, or `offline`.
            base_url: As in `get`.

        Raises:
            ModelError: The name or its provider is unknown.
        """
        from pegboard.ask.providers.requirements import requirements_of
        from pegboard.models.model_requirements import ModelRequirements

        if self.is_offline(name):
            return ModelRequirements(title="Built in", is_local=True)
        where = self._base_url(name, base_url)
        has_key = self._is_configured(name, where)
        of_folder = self._parts.settings.is_base_url_from_folder(where)
        return requirements_of(
            name, where, lambda secret: self._parts.find_secret(secret, of_folder=of_folder)[0] if has_key else None
        )

    def price(self, model: str, base_url: str | None, usage: Usage) -> float | None:
        """Return the price of a usage in US dollars, or None if the model's prices are unknown; block to load them.

        Args:
            model: `provider:model`.
            base_url: As in `get`.
            usage: The tokens used.
        """
        from pegboard.ask.providers.price import price

        return price(model, base_url or self._configured_url(model), usage)

    def tool_names(self) -> dict[str, str]:
        """Return the names of the tools that can be used, by the names that models see."""
        from pegboard.ask.offer import Offer
        from pegboard.ask.result_text import MORE

        return Offer(self._parts.usable(), taken=[MORE]).names

    @property
    def system_prompt(self) -> str:
        """Default instructions to a model, unless a session has its own."""
        from pegboard.ask.conversation import SYSTEM

        return SYSTEM

    def reads_text_calls(self, model: str) -> bool:
        """Return whether the configuration expects calls in the model's text; without a name, for any model."""
        set_ = self._parts.settings.model
        return set_.text_calls and set_.name in {None, model}

    def _folder_key(self, name: str) -> str | None:
        """Return a provider's key for a host that the working directory's configuration names."""
        return self._key(name, of_folder=True)

    def _key(self, name: str, *, of_folder: bool = False) -> str | None:
        """Return a provider's key, and redact it from now on."""
        found = self._parts.secrets.find(name, of_folder=of_folder)
        if found is None:
            return None
        self._parts.redaction.add({name: found.reveal()})
        return found.reveal()
