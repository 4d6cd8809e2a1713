"""The heaviest messages that a client may send, and some that are heavier: each is built from what the protocol's pages allow.
`MESSAGES` maps a name to (mode, frame): the frame is built when it is called. Mode "completions" is a body of POST /v1/chat/completions, the
other modes are connections, in Parley's dialect (chat, audio, video) or in one of OpenAI's (realtime, live).
`FLOODS` maps a name to (mode, opening frames, frames that are sent again and again). `WORK` maps a name to (mode, connections, opening frames,
frames): what a client within its limits may have done, one frame after the other, each when the last one was answered."""
import array
import base64
import io
import json
import random
import struct
import time
import urllib.error
import urllib.request
import wave

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

UNIT = 16000
TEXT_BYTES = 1 << 20  # of one chat append
CHAT_ITEMS = 1024
CHAT_SECONDS = 820
CHAT_PICTURES = 512


def wav(seconds: float, rate: int = UNIT, width: int = 2) -> str:
    """Quiet noise as a WAV file in base64."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, width, rate, 0, "NONE", ""))
        block = bytes((i * 7919 >> 3 & 3) + (128 if width == 1 else 0) if i % width == 0 else 0 for i in range(rate * width))
        whole = int(seconds)
        for _ in range(whole):
            file.writeframes(block)
        file.writeframes(block[: int((seconds - whole) * rate) * width])
    return base64.b64encode(out.getvalue()).decode()


def progressive_jpeg(scans: int, side: int = 4096) -> str:
    """A black progressive JPEG in base64: one scan of DC values, the others empty refinements of some 30 bytes each."""
    part = lambda kind, data: struct.pack(">BBH", 255, kind, len(data) + 2) + data
    blocks = (side // 8) ** 2
    # Two codes: "0" ends up to 32,767 blocks (EOB14 and 14 bits), "10" ends one.
    bits = "".join("0" + format(min(blocks - at, 32767) - 16384, "014b") if blocks - at >= 16384 else "10" * (blocks - at) for at in range(0, blocks, 32767))
    bits += "1" * (-len(bits) % 8)
    nothing = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    file = b"\xff\xd8" + part(0xDB, bytes([0] + [1] * 64)) + part(0xC2, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 17, 0]))
    file += part(0xC4, bytes([0, 1] + [0] * 15 + [0])) + part(0xC4, bytes([16, 1, 1] + [0] * 14 + [0xE0, 0x00]))
    file += part(0xDA, bytes([1, 1, 0, 0, 0, 0])) + bytes(-(-blocks // 8))
    for n in range(scans - 1):
        file += part(0xDA, bytes([1, 1, 0, 1, 63, 0x01 if n == 0 else 0x10])) + nothing
    return base64.b64encode(file + b"\xff\xd9").decode()


def turn(content: list, **more) -> str:
    return json.dumps({"type": "input.append", "input": {"messages": [{"role": "user", "content": content}], **{"generation": {"max_new_tokens": 2}, **more}}})


def text(data: str) -> dict:
    return {"type": "text", "text": data}


def audio(data: str) -> dict:
    return {"type": "audio", "data": data}


def image(data: str) -> dict:
    return {"type": "image", "data": data}


def append(**fields) -> str:
    return json.dumps({"type": "input.append", "input": fields})


def samples(count: int) -> str:
    return base64.b64encode(bytes(4 * count)).decode()


def loud(size: int) -> str:
    """Noise in mu-law, 8 kHz, in base64."""
    return base64.b64encode(random.Random(1).randbytes(size)).decode()


def path(mode: str) -> str:
    return {"realtime": "/openai/v1/realtime", "live": "/v1/live/sessions"}.get(mode, f"/v1/realtime?mode={mode}")


def opening(mode: str) -> list[str]:
    """What a connection of this mode sends first."""
    if mode == "realtime":
        return [realtime_session(None)]
    return [] if mode == "live" else ['{"type":"session.init","payload":{}}']


def realtime_session(turns: dict | None) -> str:
    session = {"type": "realtime", "output_modalities": ["text"], "audio": {"input": {"format": {"type": "audio/pcmu"}, "turn_detection": turns}}}
    return json.dumps({"type": "session.update", "session": session})


def live_session(**more) -> str:
    return json.dumps({"type": "session.start", "session": {"model": "m", "audio": {"format": {"type": "audio/pcmu", "rate": 8000}}, **more}})


def said(content: dict) -> dict:
    return {"type": "message", "role": "user", "content": [content]}


def realtime_sound(size: int) -> dict:
    return said({"type": "input_audio", "audio": loud(size)})


def realtime(kind: str, **fields) -> str:
    return json.dumps({"type": kind, **fields})


def picture_item() -> str:
    url = "data:image/jpeg;base64," + progressive_jpeg(700, 1024)
    return realtime("conversation.item.create", item=said({"type": "input_image", "image_url": url}))


ANSWER, CANCEL = realtime("response.create"), realtime("response.cancel")


MESSAGES = {
    "text at the limit": ("chat", lambda: turn([text("hello world " * (TEXT_BYTES // 12))])),
    "text without a space": ("chat", lambda: turn([text("ab" * (TEXT_BYTES // 2))])),
    "text in Chinese": ("chat", lambda: turn([text("".join(chr(0x4E00 + i * 37 % 20000) for i in range(TEXT_BYTES // 6)))])),
    "100 MB of text": ("chat", lambda: turn([text("hello world " * (100_000_000 // 12))])),
    "items of one sample": ("chat", lambda: turn([audio("AAAAAA==")] * CHAT_ITEMS)),
    "200,000 items": ("chat", lambda: turn([audio("AAAAAA==")] * 200_000)),
    "800 s of sound": ("chat", lambda: turn([audio(wav(400))] * 2)),
    "820 s at 48 kHz": ("chat", lambda: turn([audio(wav(CHAT_SECONDS, 48_000))])),
    "80 s at 768 kHz": ("chat", lambda: turn([audio(wav(80, 768_000, 1))])),
    "sound, 8 bits of 1 kHz": ("chat", lambda: turn([audio(wav(CHAT_SECONDS, 1000, 1))] * 15)),
    "pictures at the limit": ("chat", lambda: turn([image(progressive_jpeg(2, 64))] * CHAT_PICTURES)),
    "large pictures": ("chat", lambda: turn([image(progressive_jpeg(2))] * 64)),
    "pictures of 90 scans": ("chat", lambda: turn([image(progressive_jpeg(90))] * 12)),
    "a video of 90 scans": ("video", lambda: append(audio=samples(UNIT), video_frames=[progressive_jpeg(90)] * 4)),
    "380 s in one append": ("audio", lambda: append(audio=samples(380 * UNIT))),
    "a completion, 100 MB": ("completions", lambda: json.dumps({"messages": [{"role": "user", "content": "hello world " * (100_000_000 // 12)}]})),
    "a completion, 820 s": ("completions", lambda: json.dumps({"max_tokens": 2, "messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": wav(CHAT_SECONDS, 48_000), "format": "wav"}}]}]})),
    "a million values": ("chat", lambda: '{"type":"input.append","input":{"messages":[' + "0," * 1_000_000 + "0]}}"),
    "Realtime, 150 s": ("realtime", lambda: realtime("input_audio_buffer.append", audio=loud(150 * 8000))),
    "Realtime, 30 MB": ("realtime", lambda: realtime("input_audio_buffer.append", audio=loud(23_000_000))),
    "an item of 300 s": ("realtime", lambda: realtime("conversation.item.create", item=realtime_sound(300 * 8000))),
    "an item of 30 MB": ("realtime", lambda: realtime("conversation.item.create", item=realtime_sound(23_000_000))),
    "Live, begun with 120 s": ("live", lambda: live_session(input=[realtime_sound(120 * 8000)])),
    "Live, begun with 30 MB": ("live", lambda: live_session(input=[realtime_sound(23_000_000)])),
}

FLOODS = {
    "seconds on end": ("audio", lambda: opening("audio"), lambda: [append(audio=samples(UNIT))]),
    "chat turns on end": ("chat", lambda: opening("chat"), lambda: [turn([text("hello")])]),
    "Realtime, sound on end": ("realtime", lambda: [realtime_session({"type": "semantic_vad"})], lambda: [realtime("input_audio_buffer.append", audio=loud(150_000))]),
    "Realtime, turns on end": ("realtime", lambda: [realtime_session({"type": "server_vad"})], lambda: [realtime("input_audio_buffer.append", audio=loud(150_000))]),
    "Live, sound on end": ("live", lambda: [live_session()], lambda: [realtime("session.input_audio.append", audio=loud(150_000))]),
    "Live, words on end": ("live", lambda: [live_session()], lambda: [realtime("session.instructions.append", content="word " * 800), realtime("session.commentary.append", content="hi")]),
    "commits on end": ("realtime", lambda: opening("realtime"), lambda: [realtime("input_audio_buffer.append", audio=loud(800)), realtime("input_audio_buffer.commit")]),
    "answers, cancelled": ("realtime", lambda: opening("realtime"), lambda: [ANSWER, CANCEL]),
    "answers over 300 s": ("realtime", lambda: opening("realtime") + [realtime("conversation.item.create", item=realtime_sound(150 * 8000))] * 2, lambda: [ANSWER, CANCEL]),
    "answers over pictures": ("realtime", lambda: opening("realtime") + [picture_item()] * 6, lambda: [realtime("response.create", response={"conversation": "none"}), CANCEL]),
    "sessions shown again": ("realtime", lambda: opening("realtime"), lambda: [realtime("session.update", session={"type": "realtime", "instructions": "word " * 6000})]),
}


def voice_init(seed: int, seconds: float = 59.9) -> str:
    """A newcomer with a voice of a minute."""
    noise = array.array("h", random.Random(seed).choices(range(-3000, 3000), k=UNIT)) * 60
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 2, UNIT, 0, "NONE", ""))
        file.writeframes(noise.tobytes()[: int(seconds * UNIT) * 2])
    return json.dumps({"type": "session.init", "payload": {"voice": {"ref_audio_base64": base64.b64encode(out.getvalue()).decode()}, "config": {"generate_audio": False}}})


def window(**config) -> list[str]:
    return [json.dumps({"type": "session.init", "payload": {"config": {"sliding_window_mode": "basic", "generate_audio": False, **config}}})]


def long_lists() -> dict:
    """A schema of nearly 64 KB: objects in objects, the innermost with 64 properties, all required again and again."""
    names = [f"p{i}" for i in range(64)]
    parts = {f"c{i}": {"$ref": "#/$defs/" + (f"c{i - 1}" if i else "b")} for i in range(15)}
    return {"type": "object", "properties": {f"q{i}": {"$ref": f"#/$defs/c{i}"} for i in range(15)}, "$defs": {**parts, "b": {"type": "object", "properties": {n: {} for n in names}, "required": names * 120}}}


def letters(count: int) -> str:
    return "".join(random.Random(count).choices("abcdefghijklmnopqrstuvwxyz", k=count))


SECOND = append(audio=samples(UNIT), force_listen=True)
MARKS = {"type": "object", "properties": {"a": {"enum": ["</tool_call>" * 1250]}}, "required": ["a"]}

WORK = {
    "a window slides": ("audio", 2, lambda: window(), lambda: [SECOND]),
    "messages make it slide": ("audio", 1, lambda: window(basic_window_high_tokens=7900, basic_window_low_tokens=1), lambda: [append(audio=samples(UNIT), force_listen=True, context=[{"role": "system", "content": "x"}] * 32)]),
    "8 KB typed a second": ("audio", 1, lambda: window(basic_window_high_tokens=2000, basic_window_low_tokens=100), lambda: [append(audio=samples(UNIT), force_listen=True, context=[{"role": "user", "content": letters(5500)}])]),
    "six that send ahead": ("audio", 6, lambda: opening("audio"), lambda: [SECOND]),
    "newcomers with voices": ("init", 4, lambda: [], lambda: [voice_init(i) for i in range(12)]),
    "marks in an argument": ("chat", 1, lambda: opening("chat"), lambda: [turn([text("Hi")], generation={"max_new_tokens": 4096}, tools=[{"type": "function", "function": {"name": "f", "parameters": MARKS}}], tool_choice="required")]),
    "a schema of long lists": ("chat", 1, lambda: opening("chat"), lambda: [turn([text("Hi")], generation={"max_new_tokens": 1}, response_format={"type": "json_schema", "json_schema": {"schema": long_lists()}})]),
    "four texts of 1 MB": ("chat", 4, lambda: opening("chat"), lambda: [turn([text(letters(TEXT_BYTES - 100))])]),
    "sound of 800 s": ("chat", 1, lambda: opening("chat"), lambda: [turn([audio(wav(400))] * 2)]),
    "256 short sounds": ("chat", 1, lambda: opening("chat"), lambda: [json.dumps({"type": "input.append", "input": {"messages": [{"role": "user", "content": [audio(wav(30) if i == 0 else base64.b64encode(bytes(1600)).decode())]} for i in range(256)], "generation": {"max_new_tokens": 2}}})]),
    "twelve pictures": ("chat", 1, lambda: opening("chat"), lambda: [turn([image(progressive_jpeg(2, 1344))] * 12)]),
    "four pictures a second": ("video", 4, lambda: opening("video"), lambda: [append(audio=samples(UNIT), video_frames=[progressive_jpeg(2, 1344)] * 4, max_slice_nums=9)]),
    "eight long answers": ("chat", 8, lambda: opening("chat"), lambda: [turn([text("hello " * 1500)], generation={"max_new_tokens": 4096, "temperature": 1.5, "length_penalty": 5})]),
    "completions, a schema": ("completions", 1, lambda: [], lambda: [json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": long_lists()}}})]),
    "completions, pictures": ("completions", 2, lambda: [], lambda: [json.dumps({"max_tokens": 4, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + progressive_jpeg(2, 1344)}}] * 12}]})]),
    "completions, long": ("completions", 8, lambda: [], lambda: [json.dumps({"max_tokens": 4096, "temperature": 1.5, "messages": [{"role": "user", "content": "hello " * 1500}]})]),
    "Realtime, over 150 s": ("realtime", 1, lambda: opening("realtime") + [realtime("conversation.item.create", item=realtime_sound(150 * 8000))], lambda: [ANSWER]),
}


def extreme_sampling(chance: random.Random) -> tuple[str, list[str]]:
    """Sampling options at the edges of what the API allows: a mode, an init and inputs."""
    edge = lambda *values: chance.choice([0, 5e-324, 1e-300, 1e-39, 1e-5, 1, *values])
    options = {"temperature": edge(2), "top_k": chance.choice([0, 1, 2_000_000_000]), "top_p": edge(), "length_penalty": chance.choice([0.1, 1, 5.0])}
    words = json.dumps({"type": "input.append", "input": {"messages": [{"role": "user", "content": "hi"}], "generation": {**options, "max_new_tokens": 8}}})
    second = append(audio=samples(UNIT))
    init = json.dumps({"type": "session.init", "payload": {"config": options}})
    return chance.choice([("chat", [init, words]), ("audio", [init, second, second, second])])


def complete(url: str, body: str) -> str:
    """The server's answer to a completion, in a few words."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/v1/chat/completions", data=body.encode()), timeout=200) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as refusal:
        return f"{refusal.code} {json.loads(refusal.read())['error']['message'][:60]}"
    except OSError as gone:
        return f"no answer: {gone}"


def attack(url: str, chance: random.Random) -> str:
    """One client sends an abusive message and leaves after a while, answered or not. `url` is the server's http URL.
    Returns the kind of message."""
    kind = chance.choice([*sorted(MESSAGES), "extreme sampling"])
    if kind == "extreme sampling":
        mode, frames = extreme_sampling(chance)
    else:
        mode, build = MESSAGES[kind]
        frames = [*opening(mode), build()]
    if mode == "completions":
        complete(url, frames[-1])
        return kind
    try:
        with connect(url.replace("http", "ws", 1) + path(mode), max_size=None, compression=None, close_timeout=0.5) as socket:
            for frame in frames:
                socket.send(frame)
            time.sleep(chance.uniform(0, 2))
    except (WebSocketException, OSError):
        pass  # the server closed the connection
    return kind
