"""The environment of child processes: without providers' API keys, and set up so that nothing waits for a
keypress."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

MARK: Final = "HANDRAIL_CALL"
"""Set in every child, so that a daemon that left its process group and parent can still be found."""

KEYS: Final = frozenset(
    {
        "HANDRAIL_API_KEY",
        "AI21_API_KEY",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AZURE_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "CEREBRAS_API_KEY",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CO_API_KEY",
        "COHERE_API_KEY",
        "DASHSCOPE_API_KEY",
        "DEEPINFRA_API_KEY",
        "DEEPSEEK_API_KEY",
        "FIREWORKS_API_KEY",
        "GEMINI_API_KEY",
        "GITHUB_COPILOT_TOKEN",
        "GOOGLE_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GROQ_API_KEY",
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "HYPERBOLIC_API_KEY",
        "LITELLM_API_KEY",
        "LITELLM_MASTER_KEY",
        "MINIMAX_API_KEY",
        "MISTRAL_API_KEY",
        "MOONSHOT_API_KEY",
        "NEBIUS_API_KEY",
        "NVIDIA_API_KEY",
        "OLLAMA_API_KEY",
        "OPENAI_API_KEY",
        "OPENROUTER_API_KEY",
        "PERPLEXITY_API_KEY",
        "REPLICATE_API_TOKEN",
        "SAMBANOVA_API_KEY",
        "TOGETHER_API_KEY",
        "VOYAGE_API_KEY",
        "XAI_API_KEY",
        "ZAI_API_KEY",
        "ZHIPUAI_API_KEY",
    }
)
"""Variables that hold a model provider's key. Other secrets (for git, for a cloud) belong to the person's own
work and are passed on."""

_SETTINGS: Final = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}


def scrubbed_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the keys of providers: those of the catalog, and those of other programs in `KEYS`."""
    from handrail.providers.catalog import key_variables  # late: it is read when the first child starts

    secret = KEYS | key_variables()
    return {name: value for name, value in environ.items() if name.upper() not in secret}


def child_environment(env: Mapping[str, str] | None, mark: str) -> dict[str, str]:
    """The environment of a command: `env`, or ours without keys; no pager, no prompt, no terminal; and the
    mark."""
    return {**scrubbed_environment(os.environ if env is None else env), **_SETTINGS, MARK: mark}
