"""The HTTP formats of model providers."""

from .answer_stream import status_error
from .anthropic import Anthropic
from .gemini import Gemini
from .openai import OpenAIChat, OpenAIResponses

__all__ = ["Anthropic", "Gemini", "OpenAIChat", "OpenAIResponses", "status_error"]
