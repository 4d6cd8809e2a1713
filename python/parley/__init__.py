"""Parley from Python: start a server, and talk to one.

    import asyncio
    import parley

    async def main() -> None:
        with parley.serve() as server:
            async with parley.Client(server.url) as client:
                async for words in parley.talk(client):  # microphone and speaker, until Ctrl+C
                    print(words, end="", flush=True)

    asyncio.run(main())

`Client` speaks the native dialect of Parley's protocol; docs/protocol.md in the project's sources specifies it, and the docstrings here cite its sections.
"""

from parley.client import Client, ConnectionLost, ServerError
from parley.content import Samples, load_wav, picture, save_wav, sound
from parley.events import Answer, Closed, Delta, Event, GoAway, Problem, Queued, Resumed, ToolCall, Transcript
from parley.server import Server, serve
from parley.talk import Microphone, Speaker, paced, talk

__all__ = [
    "Answer", "Client", "Closed", "ConnectionLost", "Delta", "Event", "GoAway", "Microphone", "Problem", "Queued", "Resumed", "Samples", "Server", "ServerError", "Speaker",
    "ToolCall", "Transcript", "load_wav", "paced", "picture", "save_wav", "serve", "sound", "talk",
]
