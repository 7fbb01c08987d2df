"""Which model a run uses: the one in the settings, or the default of the first provider with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from handrail import settings
from handrail.errors import ConfigError

if TYPE_CHECKING:
    from handrail.providers.catalog import Resolved

NO_MODEL: Final = """\
no model is set up yet. One of these is enough:

  a key in the environment        export ANTHROPIC_API_KEY=…   (or OPENAI_API_KEY, OPENROUTER_API_KEY, …)
                                  handrail run "what to do"
  a server on this machine        handrail run --model ollama/qwen3 "what to do"
  any OpenAI-compatible server    handrail run --base-url http://127.0.0.1:8000/v1 --model my/NAME "…"
  a default in the settings       handrail config edit         (model = "provider/name")

`handrail models` lists the models you can use from here; `handrail doctor` says what is missing.
`handrail demo` needs none of this."""


class NoModel(ConfigError):
    """No model is configured, and no provider has a key."""


def resolve_model(chosen: settings.Settings) -> Resolved:
    """The model of the settings, else the default of the first provider with a key.

    Raises NoModel when there is neither, ConfigError when the model cannot be used.
    """
    from handrail.providers import catalog
    from handrail.providers.keys import environment

    environ = environment()
    name = chosen.model or catalog.default_model(environ, chosen.providers)
    if name is None:
        raise NoModel(NO_MODEL)
    return catalog.resolve(
        name,
        api=chosen.api,
        base_url=chosen.base_url,
        environ=environ,
        provider_settings=chosen.providers,
        model_settings=chosen.models,
    )
