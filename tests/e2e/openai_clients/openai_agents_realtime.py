"""openai-agents (PyPI): RealtimeAgent, RealtimeRunner and RealtimeSession on the URL of another server. See common.py for arguments.

Checks: connect, text, spoken, interrupt, tools, handoff, bare_url
An `error` event, an exception in the session or an error in the package's log fails any check.
"""
import asyncio
import importlib.metadata
import logging

from agents import function_tool
from agents.realtime import RealtimeAgent, RealtimeModelSendRawMessage, RealtimeRunner, realtime_handoff

from common import Checks, Microphone, arguments, base, question, silence

RATE = 24000
SEMANTIC = {"type": "semantic_vad", "interrupt_response": True}
SERVER = {"type": "server_vad", "silence_duration_ms": 300, "interrupt_response": True}
logged = []


class Catch(logging.Handler):
    def emit(self, record):
        logged.append(record.getMessage())


log = logging.getLogger("openai.agents")
log.addHandler(Catch(logging.WARNING))
log.propagate = False


class Talk:
    """A RealtimeSession whose events are all kept."""

    def __init__(self, url, key, agent, query="?model=parley", **settings):
        self.runner = RealtimeRunner(agent, config={"model_settings": settings})
        self.model_config = {"url": base(url, ws=True) + "/realtime" + query, "api_key": key}
        self.events, self.problems = [], []
        self.wake = asyncio.Event()

    async def __aenter__(self):
        logged.clear()
        self.session = await self.runner.run(model_config=self.model_config)
        await self.session.enter()
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, kind, *_):
        await self.session.close()
        await asyncio.wait([self.reader], timeout=2)
        if kind is None:
            self.problems += logged
            assert not self.problems, self.problems[0]

    async def read(self):
        try:
            async for event in self.session:
                self.events.append(event)
                if event.type == "error":
                    self.problems.append(f"error event: {event.error}")
                self.wake.set()
        except Exception as why:
            self.problems.append(f"{type(why).__name__}: {why}")
        self.wake.set()

    async def until(self, wanted, since=0):
        """The index of the next event of that type, or that such a function likes."""
        likes = wanted if callable(wanted) else lambda e: e.type == wanted
        at = since
        while True:
            while at < len(self.events):
                if likes(self.events[at]):
                    return at
                at += 1
            assert not self.problems, self.problems[0]
            assert not self.reader.done(), "the session ended"
            self.wake.clear()
            await self.wake.wait()

    async def server(self, type, since=0):
        """What the server said: the next event of that type and its index."""
        def is_it(event):
            return event.type == "raw_model_event" and event.data.type == "raw_server_event" and event.data.data["type"] == type

        at = await self.until(is_it, since)
        return self.events[at].data.data, at

    async def ask(self, text, tool_choice):
        """A message whose answer has a tool choice of its own; send_message has none."""
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for message in ({"type": "conversation.item.create", "other_data": {"item": item}},
                        {"type": "response.create", "other_data": {"response": {"tool_choice": tool_choice}}}):
            await self.session.model.send_event(RealtimeModelSendRawMessage(message=message))

    def heard(self, since=0):
        return sum(len(e.audio.data) for e in self.events[since:] if e.type == "audio") / 2 / RATE

    def history(self):
        """The last history that the application was told of."""
        told = [e.history for e in self.events if e.type == "history_updated"]
        return told[-1] if told else []

    def said(self):
        answers = [i for i in self.history() if i.type == "message" and i.role == "assistant"]
        return " ".join(c.transcript or "" for i in answers for c in i.content if c.type == "audio")


def agent(**more):
    return RealtimeAgent(**({"name": "Parley", "instructions": "Be brief."} | more))


async def run(url, checks, wav="", key="none", wait=30.0):
    speech = question(RATE, wav)

    async def connect():
        async with Talk(url, key, agent(), voice="marin", turn_detection=SEMANTIC) as t:
            made, _ = await t.server("session.created")
            assert made["session"]["id"].startswith("sess_"), made
            _, at = await t.server("session.updated")
            new, _ = await t.server("session.updated", at + 1)  # tracing has an update of its own
            new = new["session"]
            assert new["instructions"] == "Be brief." and new["audio"]["input"]["turn_detection"]["type"] == "semantic_vad", new
            assert new["tracing"] == "auto" and new["audio"]["output"]["voice"] == "marin", new
            return made["session"]["id"]

    async def answered(t):
        await t.session.send_message("What is your name?")
        end = await t.until("agent_end")
        types = [e.type for e in t.events[:end]]
        order = [types.index(x) for x in ("agent_start", "audio", "audio_end")]
        assert order == sorted(order), types
        assert t.heard() > 0.1, f"{t.heard()} s of sound"
        user, assistant = t.history()
        assert user.role == "user" and user.content[0].text == "What is your name?" and assistant.role == "assistant", t.history()
        assert t.said() and "history_added" in types, t.history()
        usage = t.events[end].info.context.usage
        assert usage.requests == 1 and usage.total_tokens == usage.input_tokens + usage.output_tokens > 0, usage
        return f"{t.said()!r}, {t.heard():.1f} s"

    async def text():
        async with Talk(url, key, agent(), turn_detection=None) as t:
            return await answered(t)

    async def bare_url():
        async with Talk(url, key, agent(), query="") as t:
            return await answered(t)

    async def spoken():
        async with Talk(url, key, agent(), turn_detection=SEMANTIC) as t:
            async with Microphone(RATE, t.session.send_audio) as mic:
                mic.say(silence(500, RATE) + speech)
                await t.until("agent_end")
            assert t.heard() > 0.1
            roles = [i.role for i in t.history()]
            assert roles == ["user", "assistant"] and t.history()[0].content[0].type == "input_audio", t.history()
            return f"{t.said()!r}, {t.heard():.1f} s"

    async def interrupt():
        async with Talk(url, key, agent(), turn_detection=SERVER) as t:  # by the user
            async with Microphone(RATE, t.session.send_audio, 50) as mic:
                mic.say(silence(300, RATE) + speech)
                at = await t.until("audio")
                item = t.events[at].item_id
                mic.say(speech)
                at = await t.until("audio_interrupted", at)
                assert t.events[at].item_id == item
                done, _ = await t.server("response.done")
                assert done["response"]["status"] == "cancelled" and done["response"]["status_details"]["reason"] == "turn_detected", done
                cut, at = await t.server("conversation.item.truncated", at)
                kept, at = await t.server("conversation.item.retrieved", at)
                assert cut["item_id"] == kept["item"]["id"] == item
                await t.until("audio", at)
                await t.until("agent_end", at)
        async with Talk(url, key, agent(), turn_detection=None) as t:  # by the application
            await t.session.send_message("Tell me a long story.")
            at = await t.until("audio")
            await t.session.interrupt()
            at = await t.until("audio_interrupted", at)
            done, _ = await t.server("response.done")
            await t.server("conversation.item.truncated", at)
            await t.session.send_message("And now?")  # and it goes on
            await t.until("agent_end", await t.until("agent_start", at))
            return "turn_detected; interrupt(): " + done["response"]["status"]

    async def tools():
        asked = []

        @function_tool
        async def get_weather(city: str) -> str:
            """Weather in a city."""
            asked.append(city)
            await asyncio.sleep(0.2)
            return "sunny"

        async with Talk(url, key, agent(tools=[get_weather]), turn_detection=None, tool_choice="none") as t:
            await t.ask("What is the weather in Paris?", "required")
            start = await t.until("tool_start")
            end = await t.until("tool_end", start)
            assert t.events[start].tool.name == "get_weather" and t.events[end].output == "sunny" and len(asked) == 1
            at = await t.until("audio", end)
            await t.until("agent_end", at)
            call = [i for i in t.history() if i.type == "function_call"]
            assert len(call) == 1 and call[0].status == "completed" and call[0].output == "sunny", t.history()
            return f"get_weather({asked[0]!r}) then {t.said()!r}"

    async def handoff():
        @function_tool
        def book(day: str) -> str:
            """Book a table."""
            return "booked"

        waiter = agent(name="Waiter", instructions="You book tables.", tools=[book])
        greeter = agent(name="Greeter", instructions="You greet.", handoffs=[realtime_handoff(waiter)])
        async with Talk(url, key, greeter, turn_detection=None, tool_choice="none") as t:
            await t.ask("I want a table.", {"type": "function", "name": "transfer_to_waiter"})
            at = await t.until("handoff")
            assert (t.events[at].from_agent.name, t.events[at].to_agent.name) == ("Greeter", "Waiter")
            new, since = None, -1
            while new is None or new["session"]["instructions"] != "You book tables.":
                new, since = await t.server("session.updated", since + 1)
            assert [x["name"] for x in new["session"]["tools"]] == ["book"], new["session"]["tools"]
            at = await t.until("audio", at)
            at = await t.until("agent_end", at)
            assert t.events[at].agent.name == "Waiter"
            first = t.said()
            await t.ask("For Monday.", "required")
            at = await t.until("tool_end", at)
            await t.until("agent_end", await t.until("audio", at))
            return f"Waiter {first!r}, then its tool"

    for name, check in (("connect", connect), ("text", text), ("spoken", spoken), ("interrupt", interrupt), ("tools", tools), ("handoff", handoff),
                        ("bare_url", bare_url)):
        await checks.run(name, check, wait)


if __name__ == "__main__":
    a = arguments()
    checks = Checks("openai-agents " + importlib.metadata.version("openai-agents"), a.only)
    asyncio.run(checks.main(run(a.url, checks, a.wav, a.key, a.wait)))
