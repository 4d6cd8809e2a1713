"""Speech over the wire: sizes and order of the deltas in both dialects, seams, interruptions, voices, spoken chat."""
import base64
import io
import struct
import wave

import numpy as np
import pytest

from realtime import UNIT, Client, b64, floats, speech

DELTA = 24000
HELD_BACK = 3840  # samples of each window that the vocoder holds back
FRAME = 480
NEAR = 1200


def wav(samples: np.ndarray, rate: int = 16000, channels: int = 1, bits: int = 16) -> bytes:
    """A PCM WAV file; every channel holds the same."""
    whole = {8: lambda x: np.uint8(np.clip(x * 127 + 128, 0, 255)), 16: lambda x: np.int16(np.clip(x, -1, 1) * 32767)}[bits](samples)
    out = io.BytesIO()
    with wave.open(out, "wb") as f:
        f.setnchannels(channels)
        f.setsampwidth(bits // 8)
        f.setframerate(rate)
        f.writeframes(np.repeat(whole[:, None], channels, 1).tobytes())
    return out.getvalue()


def tone(seconds: float, rate: int = 16000) -> np.ndarray:
    t = np.arange(int(seconds * rate)) / rate
    return 0.3 * np.sin(2 * np.pi * 180 * t) * (1 + 0.5 * np.sin(2 * np.pi * 3 * t))


def check_samples(sound: np.ndarray):
    assert np.isfinite(sound).all() and np.abs(sound).max(initial=0) <= 1


def check_turns(turns: list[list[np.ndarray]]):
    """Checks whole turns, each a list of its deltas: middle ones last a second; no seam jumps more than the sound
    nearby."""
    for turn in turns:
        for sound in turn:
            check_samples(sound)
            assert len(sound) % FRAME == 0
        for middle in turn[1:-1]:
            assert len(middle) == DELTA
        if len(turn) < 2:
            continue
        assert len(turn[0]) <= DELTA
        jumps = np.abs(np.diff(np.concatenate(turn)))
        seam = -1
        for sound in turn[:-1]:
            seam += len(sound)
            around = np.concatenate([jumps[max(0, seam - NEAR) : seam], jumps[seam + 1 : seam + NEAR]])
            assert jumps[seam] <= 1.05 * around.max(), f"a click: {jumps[seam]} where the signal itself jumps {around.max()}"


def hold(client: Client, seconds: int) -> list[list[np.ndarray]]:
    """Talks for `seconds` and checks the order of everything; returns the sounds of the turns that ended."""
    sound, turns, turn, samples = speech(seconds), [], [], 0
    for i in range(seconds):
        deltas = client.step(sound[i * UNIT : (i + 1) * UNIT])
        kinds = [d["kind"] for d in deltas]
        assert kinds in (["listen"], ["text"], ["audio"], ["text", "audio"]), kinds
        assert all(not d.get("end_of_turn") for d in deltas[:-1])
        last = deltas[-1]
        if kinds == ["listen"]:
            assert "audio" not in last or not last["audio"]
            turn = []
            continue
        tokens = deltas[0]["chunk_usage"]["output_token_details"]["audio_tokens"]
        assert last["metrics"].get("n_tts_tokens", 0) == tokens
        if "audio" in kinds:
            turn.append(floats(last["audio"]))
            assert {"cost_tts_ms", "cost_token2wav_ms"} <= last["metrics"].keys()
            if not last.get("end_of_turn"):
                assert len(turn[-1]) == DELTA
        if last.get("end_of_turn"):
            turns.append(turn)
            turn = []
    return turns


def test_deltas_of_the_current_dialect(server):
    with Client(server) as client:
        client.init(config={"force_listen_count": 0, "seed": 3})
        turns = hold(client, 40)
        closed, code = client.say_goodbye()
    assert code == 1000
    assert closed["usage"]["output_token_details"]["audio_tokens"] > 0
    assert len(turns) > 2 and any(len(turn) > 1 for turn in turns), "too little was said to show anything"
    check_turns(turns)


def test_deltas_of_the_legacy_dialect(server):
    sound, turns, turn = speech(40), [], []
    with Client(server) as client:
        client.update()
        for i in range(40):
            answer = client.step_legacy(sound[i * UNIT : (i + 1) * UNIT])
            if answer["type"] == "response.listen":
                turn = []
                continue
            turn += [floats(answer["audio"])] if answer["audio"] else []
            if answer["end_of_turn"]:
                turns.append(turn)
                turn = []
        client.say_goodbye()
    assert any(turns), "nothing was said"
    check_turns(turns)


def test_generate_audio_off(server):
    def texts(audio: bool) -> list:
        with Client(server) as client:
            client.init(config={"force_listen_count": 0, "seed": 3, "generate_audio": audio})
            steps = [client.step(speech(10)[i * UNIT : (i + 1) * UNIT]) for i in range(10)]
            assert audio or all(len(s) == 1 and s[0]["kind"] != "audio" for s in steps)
            assert audio or all("n_tts_tokens" not in s[-1]["metrics"] for s in steps)
            return [("".join(d.get("text", "") for d in s), s[-1].get("end_of_turn", False)) for s in steps]

    assert texts(True) == texts(False), "what is said does not depend on whether it is heard"


def test_an_interruption_drops_what_was_not_sent(server):
    """force_listen arrives at every moment of a step. Each step still ends exactly once, and never with stale sound."""
    sound = speech(2)
    with Client(server) as client:
        client.init(config={"force_listen_count": 0, "seed": 5})
        listened, forced, late, fresh = 0, 0, 0, True
        for i in range(60):
            client.append(sound[:UNIT])
            if i % 3 == 0:
                client.append(np.zeros(4, np.float32), force_listen=True)
                forced += 1
            deltas = [client.until("response.output.delta")]
            while "wall_clock_ms" not in deltas[-1]["metrics"]:
                deltas.append(client.until("response.output.delta"))
            kinds = [d["kind"] for d in deltas]
            if kinds[0] == "listen" and len(kinds) > 1:  # force_listen came when the step before was over: it is acknowledged by itself
                late += 1
                kinds.pop(0)
                assert late <= forced, "one for each force_listen at most"
            if kinds[-1] == "listen":
                listened, fresh = listened + 1, True
                assert kinds in (["listen"], ["text", "listen"]), kinds
                continue
            if kinds[-1] == "audio":
                if fresh and not deltas[-1].get("end_of_turn"):
                    begin = floats(deltas[-1]["audio"])
                    assert len(begin) == DELTA and not begin[:HELD_BACK].any(), "silence stands for what the vocoder holds back"
                fresh = False
            fresh |= bool(deltas[-1].get("end_of_turn"))
        assert listened > 5


def spoken(server, voice: dict | None, seconds: int = 6) -> np.ndarray:
    with Client(server) as client:
        client.init(config={"force_listen_count": 0, "seed": 3}, **({"voice": voice} if voice else {}))
        heard = [d for i in range(seconds) for d in client.step(speech(seconds)[i * UNIT : (i + 1) * UNIT]) if d["kind"] == "audio"]
    assert heard, "nothing was said"
    return np.concatenate([floats(d["audio"]) for d in heard])


def test_voices_and_their_fallbacks(server):
    mine = base64.b64encode(wav(tone(2))).decode()
    default = spoken(server, None)
    own = spoken(server, {"tts_ref_audio_base64": mine})
    again = spoken(server, {"tts_ref_audio_base64": mine})
    assert np.array_equal(own, again), "the same voice, from the cache"
    n = min(len(own), len(default))
    assert not np.array_equal(own[:n], default[:n])
    # Without a voice of its own the vocoder uses the LLM's, which also changes what is said. So this only checks that
    # it works.
    check_samples(spoken(server, {"ref_audio_base64": mine}))


VOICES = {
    "silence": wav(np.zeros(32000)),
    "60 s": wav(tone(60)),
    "8 bits, stereo, 44.1 kHz": wav(tone(2, 44100), 44100, 2, 8),
    "24 kHz": wav(tone(1, 24000), 24000),
    "truncated": wav(tone(2))[:40001],
}
NO_VOICES = {
    "0.1 s": wav(tone(0.1)),
    "61 s": wav(tone(61)),
    "only a header": wav(tone(2))[:44],
    "cut in the header": wav(tone(2))[:30],
    "no audio at all": b"\xff\xd8\xff\xe0 JFIF " + bytes(range(256)) * 200 + b"x",
    "not numbers": struct.pack("<f", float("nan")) * 8000,
}


@pytest.mark.parametrize("name", VOICES)
def test_odd_voices_work(server, name):
    voice = base64.b64encode(VOICES[name]).decode()
    with Client(server) as client:
        client.init(config={"force_listen_count": 0, "seed": 3}, voice={"tts_ref_audio_base64": voice})
        check_turns(hold(client, 6))
    with Client(server) as client:
        client.update(tts_ref_audio=voice)
        assert client.step_legacy(speech(1))["type"] == "response.listen"


@pytest.mark.parametrize("name", NO_VOICES)
def test_what_is_no_voice_is_refused_once(server, name):
    voice = base64.b64encode(NO_VOICES[name]).decode()
    for event in (
        {"type": "session.init", "payload": {"voice": {"tts_ref_audio_base64": voice}}},
        {"type": "session.update", "session": {"instructions": "Hi.", "tts_ref_audio": voice}},
    ):
        with Client(server) as client:
            client.until("session.queue_done")
            client.send(event)
            error = client.until_error()
            assert error["code"] == "invalid_payload" and "ref_audio" in error["message"], error
            client.send({"type": "session.init", "payload": {}})
            client.until("session.created")
            assert client.step(speech(1))[-1]["kind"] == "listen"
            assert [e["type"] for e in client.heard].count("error") == 1


GENERATION = {"max_new_tokens": 40, "seed": 4, "do_sample": True}


def test_chat_is_heard_without_use_tts_template(server):
    with Client(server, mode="chat") as client:
        client.init()
        deltas, done = client.ask("Say something.", tts={"enabled": True}, generation=GENERATION)
    texts = [d["text"] for d in deltas if d["kind"] == "text"]
    sounds = [floats(d["audio"]) for d in deltas if d["kind"] == "audio"]
    assert "".join(texts) == done["text"] and done["text"], "the text comes once"
    assert sounds and not done.get("audio")
    check_turns([sounds])
    tokens = done["usage"]["output_token_details"]["audio_tokens"]
    assert done["metrics"]["n_tts_tokens"] == tokens
    assert sum(map(len, sounds)) == (tokens + 3) * 2 * FRAME


def test_chat_that_does_not_stream_is_heard_at_its_end(server):
    with Client(server, mode="chat") as client:
        client.init()
        deltas, done = client.ask("Say something.", tts={"enabled": True}, streaming=False, generation=GENERATION)
    assert deltas == []
    sound = floats(done["audio"])
    check_samples(sound)
    assert len(sound) == done["usage"]["output_token_details"]["audio_tokens"] * 2 * FRAME > 0


def test_chat_voices(server):
    def heard(**tts) -> np.ndarray:
        deltas, _ = client.ask("Say something.", tts={"enabled": True, **tts}, generation=GENERATION)
        return np.concatenate([floats(d["audio"]) for d in deltas if d["kind"] == "audio"])

    with Client(server, mode="chat") as client:
        client.init()
        mine = b64(tone(2))
        default, own, again = heard(), heard(ref_audio_data=mine), heard(ref_audio_data=mine)
        assert np.array_equal(own, again) and len(own) == len(default) and not np.array_equal(own, default)
        client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": "Hi"}], "tts": {"enabled": True, "ref_audio_data": "AAAA"}}})
        assert client.until_error()["code"] == "invalid_payload"


def test_chat_without_speech_costs_nothing(server):
    with Client(server, mode="chat") as client:
        client.init()
        deltas, done = client.ask("Hello", generation=GENERATION)
    assert all(d["kind"] == "text" for d in deltas) and not done.get("audio")
    assert done["usage"]["output_token_details"]["audio_tokens"] == 0 and "n_tts_tokens" not in done["metrics"]
