"""Video full-duplex: both dialects see and count frames; a broken frame spoils only its append."""
import base64
from pathlib import Path

from realtime import UNIT, Client, speech

PICTURES = Path(__file__).resolve().parents[1] / "data" / "pictures"
ROWS_PER_PIECE = 64
ROWS_WITH_MARKS = 66


def picture(name: str) -> str:
    return base64.b64encode((PICTURES / name).read_bytes()).decode()


FRAME = picture("frame.jpg")  # 640x480: either one piece, or an overview and two cells
BROKEN = base64.b64encode((PICTURES / "frame.jpg").read_bytes()[:9000]).decode()


def second(i: int):
    return speech(8)[i * UNIT : (i + 1) * UNIT]


def test_current_dialect(server):
    with Client(server, "video") as client:
        created = client.init(config={"force_listen_count": 100, "generate_audio": False}, max_slice_nums=1)
        kv = created["prompt_length"]
        pieces = [
            ({}, 0),
            ({"video_frames": [FRAME]}, 1),
            ({"video_frames": [FRAME], "max_slice_nums": 4}, 3),
            ({"video_frames": [FRAME, picture("chroma_444.jpg")], "hints": {"max_slice_nums": 2}}, 4),
            ({"video_frames": [picture("grey.jpg"), picture("cmyk.jpg"), picture("rotated.jpg"), picture("progressive.jpg")]}, 4),
        ]
        grown = []
        for i, (fields, expected) in enumerate(pieces):
            delta = client.step(second(i), **fields)[-1]
            metrics, usage = delta["metrics"], delta["chunk_usage"]
            if expected:
                assert metrics["vision_slices"] == expected
                assert metrics["vision_tokens"] == expected * ROWS_PER_PIECE
            else:
                assert "vision_slices" not in metrics
            assert usage["input_token_details"]["vision_tokens"] == expected * ROWS_PER_PIECE
            grown.append(metrics["kv_cache_length"] - kv - expected * ROWS_WITH_MARKS)
            kv = metrics["kv_cache_length"]
        # Apart from pictures every second costs the same, except that the first has no earlier unit to close.
        assert len(set(grown[1:])) == 1 and grown[1] == grown[0] + 2, grown
        goodbye, code = client.say_goodbye()
        assert code == 1000
        assert goodbye["usage"]["input_token_details"]["vision_tokens"] == sum(n for _, n in pieces) * ROWS_PER_PIECE


def test_legacy_dialect(start_server):
    legacy = start_server("--set", "protocol.legacy_extras=true", "--set", "engine.seed=7", "--set", "worker.max_sessions=1")
    with Client(legacy, "video") as client:
        client.update(max_slice_nums=2)
        kv = None
        for i, expected in enumerate([3, 3, 0, 3]):
            event = client.step_legacy(second(i), **({"video_frames": [FRAME]} if expected else {}))
            metrics = event["metrics"]
            assert metrics.get("vision_slices", 0) == expected
            assert metrics.get("vision_tokens", 0) == expected * ROWS_PER_PIECE
            if kv is not None:
                assert metrics["kv_cache_length"] - kv >= expected * ROWS_WITH_MARKS
            kv = metrics["kv_cache_length"]


def test_broken_frames(server):
    with Client(server, "video") as client:
        client.init(config={"force_listen_count": 100})
        kv = client.step(second(0))[-1]["metrics"]["kv_cache_length"]
        for frames in ([BROKEN], [FRAME, BROKEN], [picture("alpha.png")], ["####"]):
            client.append(second(1), video_frames=frames)
            assert client.until_error()["code"] == "invalid_payload"
        delta = client.step(second(2), video_frames=[FRAME])[-1]
        assert delta["metrics"]["kv_cache_length"] == kv + 13 + ROWS_WITH_MARKS


def test_chat_with_pictures(server):
    with Client(server, "chat") as client:
        client.init()
        image = lambda name: {"type": "image", "data": picture(name)}
        spoken = {"type": "audio", "data": base64.b64encode(speech(1).tobytes()).decode()}
        content = [image("frame.jpg"), {"type": "text", "text": "and"}, spoken, image("alpha.png"), image("lossy.webp"), {"type": "text", "text": "?"}]
        _, done = client.ask(content, image={"max_slice_nums": 2}, generation={"max_new_tokens": 8})
        assert done["usage"]["input_token_details"]["vision_tokens"] == 5 * ROWS_PER_PIECE
        assert done["usage"]["input_token_details"]["audio_tokens"] == 10
        film = {"type": "video", "data": [FRAME, FRAME]}
        _, done = client.ask([film, {"type": "text", "text": "What happens?"}], image={"max_slice_nums": 1}, omni_mode=True, generation={"max_new_tokens": 8})
        assert done["usage"]["input_token_details"]["vision_tokens"] == 2 * ROWS_PER_PIECE
        _, done = client.ask("No picture.", generation={"max_new_tokens": 8})
        assert done["usage"]["input_token_details"]["vision_tokens"] == 0
        client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": [{"type": "image", "data": BROKEN}]}]}})
        assert client.until_error()["code"] == "invalid_payload"
        client.ask("Still there?", generation={"max_new_tokens": 4})
