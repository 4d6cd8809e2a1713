"""What OpenAI's dialects offer at the door: ephemeral keys, transcripts, voices by name, and settings that close it. OpenAI's own Python package
is the client."""
import asyncio
import base64
import hashlib

import openai
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from conftest import ROOT
from openai_rules import Realtime
from realtime import SPOKEN, http, speech

OWNER = "k-71c2be90d4aa"
SPEAKS = (ROOT / "models/tiny-omni/assets").is_dir()


def sdk(server, key: str = "none") -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=server.http + "/v1", api_key=key, max_retries=0, timeout=120)


@pytest.fixture
def keys(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"shop {hashlib.sha256(OWNER.encode()).hexdigest()}\n")
    return f"auth.keys_file={path}"


async def answer(server, key: str, prepare=None) -> tuple:
    """The first event of a connection with this key, and a typed answer over it."""
    async with sdk(server, key).realtime.connect(model="any") as connection:
        events = aiter(connection)
        created = await anext(events)
        await connection.conversation.item.create(item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]})
        await connection.response.create(response={"output_modalities": ["text"], "max_output_tokens": 4})
        async for event in events:
            assert event.type != "error", event
            if event.type == "response.done":
                return created, event.response


def test_a_key_for_a_browser(start_server, keys):
    server = start_server("--set", keys)

    async def talk():
        made = await sdk(server, OWNER).realtime.client_secrets.create(
            expires_after={"anchor": "created_at", "seconds": 60},
            session={"type": "realtime", "instructions": "Be brief.", "audio": {"input": {"turn_detection": None}}},
        )
        assert made.value.startswith("ek_") and made.session.instructions == "Be brief." and made.session.type == "realtime"
        created, said = await answer(server, made.value)
        assert created.session.instructions == "Be brief." and created.session.audio.input.turn_detection is None
        assert said.status in ("completed", "incomplete")
        with pytest.raises(openai.AuthenticationError):
            await sdk(server, made.value).chat.completions.create(model="any", messages=[{"role": "user", "content": "Hello"}])
        with pytest.raises(openai.AuthenticationError):
            await sdk(server, made.value).realtime.client_secrets.create()
        with pytest.raises(openai.BadRequestError) as wrong:
            await sdk(server, OWNER).realtime.client_secrets.create(expires_after={"anchor": "created_at", "seconds": 9})
        assert wrong.value.param == "expires_after.seconds"
        return made.value

    secret = asyncio.run(talk())
    # As a browser sends it, and to a URL that says nothing else.
    with connect(server.realtime, subprotocols=["realtime", f"openai-insecure-api-key.{secret}"]) as socket:
        assert socket.subprotocol == "realtime" and '"session.created"' in socket.recv()
    with connect(server.realtime, additional_headers={"Authorization": f"Bearer {secret}"}) as socket:
        assert '"Be brief."' in socket.recv()
    with pytest.raises(InvalidStatus) as refusal:
        connect(server.realtime + "?model=any", additional_headers={"Authorization": f"Bearer {secret}x"})
    assert refusal.value.response.status_code == 401
    assert secret not in server.log.read_text()


def test_gateways_share_a_secret(start_server, keys, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(range(32)))
    one, two = (start_server("--set", keys, "--set", f"auth.ephemeral_secret_file={secret}") for _ in range(2))
    apart = start_server("--set", keys)

    async def talk():
        made = await sdk(one, OWNER).realtime.client_secrets.create()
        await answer(two, made.value)
        with pytest.raises(InvalidStatus):
            await answer(apart, made.value)

    asyncio.run(talk())


def test_what_the_user_said(start_server):
    server = start_server("--set", "openai.transcribe=chat", "--set", "worker.max_sessions=2")
    rules = Realtime()

    async def talk():
        async with sdk(server).realtime.connect(model="any") as connection:
            wish = {"model": "whisper-1", "language": "en"}
            await connection.session.update(session={"type": "realtime", "audio": {"input": {"transcription": wish, "turn_detection": None}}})
            samples = (speech() * 32767).astype("<i2").repeat(3)[::2]  # 16 to 24 kHz
            await connection.input_audio_buffer.append(audio=base64.b64encode(samples.tobytes()).decode())
            await connection.input_audio_buffer.commit()
            committed, seen = None, []
            async for event in connection:
                rules.check({name: value for name, value in event.to_dict(mode="json", exclude_unset=True).items()})
                seen.append(event.type)
                if event.type == "session.updated":
                    assert event.session.audio.input.transcription.to_dict() == wish
                if event.type == "input_audio_buffer.committed":
                    committed = event.item_id
                if event.type == "conversation.item.input_audio_transcription.completed":
                    assert event.item_id == committed and abs(event.usage.seconds - len(samples) / 24000) < 0.05
                    break
            assert "error" not in seen

    asyncio.run(talk())
    assert 'parley_transcripts_total{result="completed"} 1' in http(server, "/metrics")[1]


@pytest.mark.skipif(not SPEAKS, reason="the model does not speak")
def test_a_voice_by_name(start_server, tmp_path):
    server = start_server("--set", f"openai.voices=marin={SPOKEN}")

    async def talk():
        async with sdk(server).realtime.connect(model="any") as connection:
            await connection.session.update(session={"type": "realtime", "audio": {"input": {"turn_detection": None}, "output": {"voice": "marin"}}})
            await connection.response.create(response={"max_output_tokens": 3})
            async for event in connection:
                assert event.type != "error", event
                if event.type == "response.done":
                    assert event.response.status in ("completed", "incomplete")
                    return

    asyncio.run(talk())


def status_at_upgrade(url: str, **how) -> int:
    try:
        with connect(url, **how):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


def test_a_door_that_is_closed(start_server):
    server = start_server("--set", "openai.realtime=off")
    base = server.realtime.removesuffix("/v1/realtime")
    assert status_at_upgrade(base + "/v1/live") == 404
    assert status_at_upgrade(base + "/openai/v1/realtime") == 404
    assert status_at_upgrade(server.realtime, subprotocols=["realtime"]) == 404
    assert status_at_upgrade(server.realtime + "?mode=audio") == 101
    with connect(server.realtime + "?model=x") as socket:
        assert '"session.queue_done"' in socket.recv()
    assert http(server, "/v1/realtime/client_secrets", method="POST", body={})[0] == 404


def test_a_door_for_those_who_knock(start_server):
    server = start_server("--set", "openai.realtime=explicit")
    with connect(server.realtime + "?model=x") as socket:
        assert '"session.queue_done"' in socket.recv()
    with connect(server.realtime + "?model=x", subprotocols=["realtime"]) as socket:
        assert '"session.created"' in socket.recv()
    with connect(server.realtime + "?dialect=openai") as socket:
        assert '"session.created"' in socket.recv()
