"""What an API key may use: counted over sessions, dialects and restarts, and told to those who are concerned."""
import hashlib
import json
import os
import re
import signal
import urllib.error
import urllib.request

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from nodes import wait_until
from realtime import Client

class Keys:
    """A keys file with limits; the key of NAME is `key-of-NAME`."""

    def __init__(self, path, **limits: str):
        self.path = path
        self.write(**limits)

    def write(self, **limits: str):
        lines = [f"{name} {hashlib.sha256(f'key-of-{name}'.encode()).hexdigest()} {limit}\n" for name, limit in limits.items()]
        new = self.path.with_suffix(".new")
        new.write_text("".join(lines))
        os.replace(new, self.path)


def as_(name: str) -> dict:
    return {"additional_headers": {"Authorization": f"Bearer key-of-{name}"}}


def ask(server, name: str, path: str, body: dict | None = None):
    """Status, headers and body of one request."""
    request = urllib.request.Request(server.http + path, data=None if body is None else json.dumps(body).encode(), headers={"Authorization": f"Bearer key-of-{name}", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers, answer.read().decode()


def usage(server, name: str) -> dict:
    status, _, body = ask(server, name, "/v1/usage")
    assert status == 200, body
    return json.loads(body)


def quota(of: dict, name: str) -> dict:
    return next(each for each in of["quotas"] if each["name"] == name)


COMPLETION = {"model": "parley", "messages": [{"role": "user", "content": "Say something."}], "max_tokens": 8}


def talk_until_spent(server, name: str) -> dict:
    with Client(server, "chat", **as_(name)) as client:
        client.init()
        for _ in range(100):
            client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": "Say something."}]}})
            while (event := client.receive())["type"] not in ("response.done", "error"):
                pass
            if event["type"] == "error":
                assert client.until("session.closed")["reason"] == "quota_exceeded"
                assert client.closed() == 1008
                return event["error"]
    raise AssertionError("it goes on and on")


def test_a_key_uses_up_its_tokens(start_server, tmp_path):
    keys = Keys(tmp_path / "keys.txt", ann="tokens_per_day=150", bob="", root="admin")
    flags = ["--set", f"auth.keys_file={keys.path}", "--set", f"journal.dir={tmp_path / 'journal'}", "--set", "engine.seed=7"]
    server = start_server(*flags)
    assert quota(usage(server, "ann"), "tokens_per_day") | {"renews_at": ""} == {"name": "tokens_per_day", "limit": 150, "used": 0, "left": 150, "renews_at": ""}
    error = talk_until_spent(server, "ann")
    assert error["code"] == "quota_exceeded" and re.fullmatch(r"the 150 tokens of this day are used up; renewed at 20\d\d-\d\d-\d\dT00:00:00Z", error["message"])

    spent = quota(usage(server, "ann"), "tokens_per_day")
    assert spent["used"] >= 150 and spent["left"] == 0 and spent["renews_at"] in error["message"]
    assert quota(usage(server, "ann"), "tokens_per_month")["limit"] is None
    assert {each["key"]: quota(each, "tokens_per_day")["used"] for each in usage(server, "root")["keys"]} == {"ann": spent["used"]}
    assert ask(server, "nobody", "/v1/usage")[0] == 401
    assert "keys" not in usage(server, "bob")
    metrics = ask(server, "root", "/metrics")[2]
    assert f'parley_key_quota_used{{key="ann",quota="tokens_per_day"}} {spent["used"]}\n' in metrics
    assert 'parley_key_quota{key="ann",quota="tokens_per_day"} 150\n' in metrics and 'quota="minutes_per_day"' not in metrics
    wait_until(lambda: re.search(r"key ann has used up its tokens_per_day \(150\)", server.log.read_text()), "the log tells")

    def check_refused(server):
        with pytest.raises(InvalidStatus) as refused:
            Client(server, **as_("ann"))
        answer = refused.value.response
        assert answer.status_code == 429 and json.loads(answer.body)["error"]["code"] == "quota_exceeded" and 1 <= int(answer.headers["Retry-After"]) <= 86400
        status, _, body = ask(server, "ann", "/v1/chat/completions", COMPLETION)
        wrong = json.loads(body)["error"]
        assert (status, wrong["type"], wrong["code"], wrong["message"]) == (429, "insufficient_quota", "insufficient_quota", error["message"])
        with pytest.raises(InvalidStatus) as refused:
            connect(server.realtime + "?model=parley", **as_("ann"))
        assert refused.value.response.status_code == 429 and json.loads(refused.value.response.body)["error"]["code"] == "insufficient_quota"
        assert ask(server, "bob", "/v1/chat/completions", COMPLETION)[0] == 200

    check_refused(server)
    assert server.stop() == 0
    server = start_server(*flags)
    assert quota(usage(server, "ann"), "tokens_per_day") == spent
    check_refused(server)
    keys.write(ann="tokens_per_day=100000", bob="", root="admin")
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "keys: 3 (0 new, 0 gone)" in server.log.read_text(), "read again")
    assert ask(server, "ann", "/v1/chat/completions", COMPLETION)[0] == 200
    assert quota(usage(server, "ann"), "tokens_per_day")["used"] > spent["used"]


def test_a_realtime_connection_ends_with_its_quota(start_server, tmp_path):
    keys = Keys(tmp_path / "keys.txt", ann="tokens_per_month=1")
    server = start_server("--set", f"auth.keys_file={keys.path}")
    with connect(server.realtime + "?model=parley", max_size=None, **as_("ann")) as client:
        client.send(json.dumps({"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"]}}))
        heard = []
        for _ in range(20):
            client.send(json.dumps({"type": "response.create", "response": {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say something."}]}]}}))
            while not heard or heard[-1]["type"] not in ("response.done", "error"):
                heard.append(json.loads(client.recv(timeout=60)))
            if heard[-1]["type"] == "error" or heard[-1]["response"]["status"] == "failed":
                break
            heard.append({"type": ""})
        while heard[-1]["type"] != "error":
            heard.append(json.loads(client.recv(timeout=60)))
        assert heard[-1]["error"]["type"] == heard[-1]["error"]["code"] == "insufficient_quota" and "of this month are used up" in heard[-1]["error"]["message"]


def test_a_key_has_its_own_share_of_sessions_and_starts(start_server, tmp_path):
    keys = Keys(tmp_path / "keys.txt", ann="sessions=1", bob="starts_per_minute=2", carl="")
    server = start_server("--set", f"auth.keys_file={keys.path}", "--set", "limits.sessions_per_key=2")
    with Client(server, **as_("ann")):
        with pytest.raises(InvalidStatus) as refused:
            Client(server, **as_("ann"))
        assert refused.value.response.status_code == 429 and b"too many sessions are open" in refused.value.response.body
    with Client(server, **as_("carl")), Client(server, **as_("carl")):
        pass
    for _ in range(2):
        with Client(server, **as_("bob")) as client:
            client.init()
            client.say_goodbye()
    with pytest.raises(InvalidStatus) as refused:
        Client(server, **as_("bob"))
    assert refused.value.response.status_code == 429 and b"started within a minute" in refused.value.response.body
