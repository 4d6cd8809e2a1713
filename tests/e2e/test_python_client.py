"""`parley.Client` and `parley.serve` of python/, against the real server and the default model."""
import asyncio
import base64
import os
import re
import subprocess
import sys
import urllib.request
import wave
from array import array
from itertools import islice

import pytest

from conftest import BINARY, ROOT
from lossy import Lossy
from realtime import SPOKEN, drawn, http, jpeg

sys.path.insert(0, str(ROOT / "python"))
os.environ["PARLEY_BINARY"] = str(BINARY)
import parley  # noqa: E402
from parley.content import decode_samples, encode_samples  # noqa: E402
from parley.resuming import Journal, waits  # noqa: E402
from parley.talk import Waiting, silence  # noqa: E402

NAME = "My name is Parley."


@pytest.fixture(scope="module")
def nano():
    with parley.serve("--set", "engine.seed=7", "--set", "worker.max_sessions=1") as server:
        yield server


class Player:
    """Keeps what it is to play."""

    def __init__(self):
        self.heard = array("f")
        self.stopped = 0

    def play(self, samples):
        self.heard.extend(samples)

    def stop(self):
        self.stopped += 1


def test_chat(nano):
    async def main():
        async with parley.Client(nano.url, "chat") as client:
            answer = await client.ask("What is your name?", generation={"seed": 1})
            assert (answer.text, answer.reason, len(answer.audio), answer.tool_calls) == (NAME, "turn_end", 0, ())
            assert answer.usage["output_token_details"]["text_tokens"] > 0

            pieces = [piece async for piece in client.stream("What is your name?", generation={"seed": 1})]
            assert len(pieces) > 2 and "".join(piece.text for piece in pieces[:-1]) == pieces[-1].text == NAME

            spoken = await client.ask("What is your name?", speak=True, generation={"seed": 1})
            assert spoken.text == NAME and 24_000 < len(spoken.audio) < 5 * 24_000 and max(spoken.audio) > 0.05

            with pytest.raises(parley.ServerError, match="max_new_tokens") as refused:
                await client.ask("Hello.", generation={"max_new_tokens": 0})
            assert refused.value.code == "invalid_payload"

            async for _ in client.stream("What is the capital of France?"):
                break  # what is left of it belongs to no later question
            assert (await client.ask("What is your name?", generation={"seed": 1})).text == NAME

            seen = await client.ask([{"role": "user", "content": [parley.sound(SPOKEN.read_bytes())]}], generation={"seed": 1})
            assert seen.reason == "turn_end" and seen.usage["input_token_details"]["audio_tokens"] > 0

    asyncio.run(main())


def test_audio_by_file(nano):
    """A spoken question is answered in words and sound, and nothing that was finished is cut off."""

    async def main():
        player = Player()
        async with parley.Client(nano.url) as client:
            said = [words async for words in parley.talk(client, parley.paced(parley.load_wav(SPOKEN), listen_seconds=4), player)]
        assert "".join(said).strip() == NAME and said[-1] == "\n"
        assert len(player.heard) == 2 * 24_000 and max(player.heard) > 0.05
        assert player.stopped == 0

    asyncio.run(main())


def test_video(nano):
    picture = base64.b64decode(jpeg(drawn("circle", (220, 20, 20))))

    async def main():
        async with parley.Client(nano.url, "video") as client:
            for _ in range(2):
                await client.append(silence(1), frames=[picture])
                event = await anext(client)
                assert event.kind == "listen" and event.metrics["vision_slices"] == 1
            await client.append(context=[{"role": "user", "content": "Hello."}])
            await client.append(b"123")

    with pytest.raises(ValueError, match="float32"):
        asyncio.run(main())


@pytest.mark.parametrize("mode", ["audio", "chat"])
def test_a_cut_connection_is_resumed(nano, mode):
    """The connection is reset in the middle of an answer, for as long as it takes the client to notice that it cannot come back: nothing is lost or repeated."""

    async def chat(client, relay):
        async for piece in client.stream("What is your name?", speak=True, generation={"seed": 1}):
            if isinstance(piece, parley.Delta) and piece.kind == "text" and client.session_id not in cut:
                cut.add(client.session_id)
                relay.cut()
                asyncio.get_running_loop().call_later(1, relay.mend)
        assert piece.text == NAME
        assert (await client.ask("What is your name?", generation={"seed": 1})).text == NAME

    async def audio(client, relay):
        samples = parley.load_wav(SPOKEN) + silence(4)
        units = [samples[at : at + 16_000] for at in range(0, len(samples) // 16_000 * 16_000, 16_000)]
        texts, answered = [], []
        for number, unit in enumerate(units, 1):
            if number == 3:
                relay.cut()  # before it is sent: it waits, and goes out when the connection is back
                asyncio.get_running_loop().call_later(1, relay.mend)
            await client.append(unit)
            async for event in client:
                if isinstance(event, parley.Resumed):
                    cut.add(client.session_id)
                if isinstance(event, parley.Delta):
                    texts.append(event.text)
                    if "wall_clock_ms" in event.metrics:
                        answered.append(event.input_id)
                        break
        assert answered == [f"input_{number}" for number in range(1, len(units) + 1)]
        assert "".join(texts).strip() == NAME

    async def main():
        with Lossy(Address(nano.url)) as relay:
            async with parley.Client(relay.http, mode) as client:
                await {"audio": audio, "chat": chat}[mode](client, relay)
                assert cut == {client.session_id}

    cut = set()
    asyncio.run(main())


class Address:
    def __init__(self, url):
        self.host, port = url.split("://")[1].rsplit(":", 1)
        self.port = int(port)


def test_a_session_that_is_over_is_not_resumed(nano):
    async def main():
        with Lossy(Address(nano.url)) as relay:
            async with parley.Client(relay.http) as client:
                relay.cut()
                urllib.request.urlopen(urllib.request.Request(f"{nano.url}/sessions/{client.session_id}/close", data=b"{}", method="POST")).close()
                relay.mend()
                with pytest.raises(parley.ServerError, match="resume_refused"):
                    await anext(client)
                with pytest.raises(parley.ConnectionLost):
                    await client.append(silence(1))

    asyncio.run(main())


def test_another_address_goes_on_with_the_session(nano):
    """As behind two gateways of which one does not come back."""

    async def main():
        with Lossy(Address(nano.url)) as first, Lossy(Address(nano.url)) as second:
            async with parley.Client(first.http, "chat", others=[second.http]) as client:
                first.cut()
                assert isinstance(await anext(client), parley.Resumed)
                assert (await client.ask("What is your name?", generation={"seed": 1})).text == NAME

    asyncio.run(main())


def test_without_resumption_a_cut_connection_is_the_end(nano):
    async def main():
        with Lossy(Address(nano.url)) as relay:
            async with parley.Client(relay.http, resume=False) as client:
                relay.cut()
                with pytest.raises(parley.ConnectionLost):
                    await anext(client)

    asyncio.run(main())


def test_who_waits_is_told_the_place(nano):
    async def main():
        async with parley.Client(nano.url, "chat") as first:
            second = parley.Client(nano.url, "chat")
            places = second.positions()
            assert (await anext(places)).position == 1
            with pytest.raises(asyncio.TimeoutError):
                await parley.Client(nano.url, "chat").open(seconds=0.2)
            await first.close()
            async for _ in places:
                pass
            assert (await second.ask("What is your name?", generation={"seed": 1})).text == NAME
            await second.close()

    asyncio.run(main())


def test_the_session_ends_with_its_reason(nano):
    async def main():
        async with parley.Client(nano.url) as client:
            urllib.request.urlopen(urllib.request.Request(f"{nano.url}/sessions/{client.session_id}/close", data=b'{"reason": "enough"}', method="POST")).close()
            events = [event async for event in client]
            assert [event.reason for event in events] == ["enough"]

    asyncio.run(main())


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="nowhere"), parley.serve(model=tmp_path / "nowhere"):
        pass


def test_a_server_ends_with_its_block():
    with parley.serve() as server:
        assert http(type("Server", (), {"http": server.url}), "/health")[0] == 200
    assert server.process.returncode == 0


def test_the_waits_are_those_of_the_protocol():
    """Half a second and a random time of the same length, doubled up to ten seconds; or what the server asked for."""
    assert list(islice(waits(None, lambda: 0), 6)) == [0.5, 1, 2, 4, 8, 10]
    assert list(islice(waits(None, lambda: 1), 3)) == [1, 2, 4]
    assert list(islice(waits(3, lambda: 0.5), 3)) == [4.5, 9, 15]
    assert list(islice(waits(0, lambda: 1), 3)) == [0, 1, 2]


def test_the_journal_sends_again_what_has_not_arrived():
    journal = Journal(kept_bytes=6)
    for frame in ("aa", "bb", "cc"):
        journal.add(frame)
    assert journal.after(1) == ["bb", "cc"]
    journal.add("dd")
    assert journal.after(1) == ["bb", "cc", "dd"]
    journal.add("eeee")
    assert journal.after(1) == ["dd", "eeee"], "what is no longer kept is skipped"
    assert journal.after(2) == ["eeee"], "and what is sent takes its numbers"
    assert journal.after(9) == []
    journal.add("f" * 99)
    assert journal.after(9) == ["f" * 99], "the newest one is always kept"


def test_sound_is_carried_to_the_bit(tmp_path):
    samples = array("f", (0.0, -1.0, 0.25, 1e-9))
    assert decode_samples(encode_samples(samples)) == samples == decode_samples(encode_samples(samples.tobytes()))
    with pytest.raises(TypeError, match="float32"):
        encode_samples(array("d", (0.0,)))
    parley.save_wav(tmp_path / "a.wav", array("f", (0.0, -1.0, 0.5)), rate=16_000)
    assert [round(sample, 3) for sample in parley.load_wav(tmp_path / "a.wav")] == [0.0, -1.0, 0.5]
    parley.save_wav(tmp_path / "b.wav", samples)
    with pytest.raises(ValueError, match="24000 Hz"):
        parley.load_wav(tmp_path / "b.wav")


def test_a_speaker_plays_silence_between():
    waiting, out = Waiting(), bytearray(8)
    waiting.add(array("f", (0.5, 0.25, 1.0)))
    waiting.fill(memoryview(out))
    assert list(memoryview(out).cast("f")) == [0.5, 0.25]
    waiting.fill(memoryview(out))
    assert list(memoryview(out).cast("f")) == [1.0, 0.0]
    waiting.add(array("f", (0.5,)))
    waiting.clear()
    waiting.fill(memoryview(out))
    assert list(memoryview(out).cast("f")) == [0.0, 0.0]


EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.S)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4 and max(len(example.splitlines()) for example in EXAMPLES) <= 16


@pytest.mark.parametrize("example", EXAMPLES, ids=[f"example{number}" for number in range(1, len(EXAMPLES) + 1)])
def test_an_example_of_the_docs_runs(nano, example, tmp_path):
    """As printed, but for the port. tests/support/devices stands in for the microphone and the loudspeaker: it hears question.wav, and keeps what is played."""
    (tmp_path / "question.wav").symlink_to(SPOKEN)
    (tmp_path / "frame.jpg").symlink_to(ROOT / "tests/data/pictures/frame.jpg")
    where = [str(ROOT / "python"), str(ROOT / "tests/support/devices")]
    done = subprocess.run([sys.executable, "-c", example.replace("http://127.0.0.1:8006", nano.url)], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"PYTHONPATH": os.pathsep.join(where), "HEARD_WAV": str(SPOKEN), "PLAYED_WAV": str(tmp_path / "played.wav")})
    if "parley.talk(client)" in example:
        assert done.stderr.splitlines()[-1] == "KeyboardInterrupt" and NAME in done.stdout, (done.stdout, done.stderr)
        with wave.open(str(tmp_path / "played.wav")) as played:
            sound = array("h", played.readframes(played.getnframes()))
        assert sum(abs(sample) > 300 for sample in sound) > 12_000, "half a second of it is loud"
    else:
        assert done.returncode == 0, done.stderr
