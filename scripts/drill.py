#!/usr/bin/env python3
"""A night of operations in minutes: two gateways and three workers with TLS and API keys, watched by Prometheus with docs/alerts.yaml, and 60 people who talk.
Meanwhile a worker and a gateway are updated, keys rotate, certificates are renewed, a key uses up its budget, somebody tries keys, and the disk of a
gateway's journal fills.
  scripts/drill.py [--sessions 60] [--seconds 360] [--folder F]
No conversation may be lost; of the alerts exactly those that should must fire. Exit status 1 otherwise. Without permission to mount a small disk of its own
(root, or user namespaces) that part is left out, and said to be."""
import argparse
import hashlib
import json
import logging
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/e2e"), str(ROOT / "bench")]
from chaos_gateways import Returning  # noqa: E402
from nodes import Process, wait_until, worker  # noqa: E402
from paced import Paced  # noqa: E402
from ports import free_port  # noqa: E402
from realtime import Client, Closed  # noqa: E402
from unpacked import ENVIRONMENT, program  # noqa: E402
from websockets.exceptions import InvalidHandshake  # noqa: E402

UNITS = 60  # seconds of one conversation
PROMETHEUS_SECONDS = 5
LINKS = ("--set", "nodes.silence_seconds=5", "--set", "nodes.rejoin_seconds=0.5")
ROOMY = [flag for key, value in {"limits.backlog_units": 60, "limits.failover_units": 60, "queue.no_worker_seconds": 60}.items() for flag in ("--set", f"{key}={value}")]


class Files:
    """The authority, the certificates and the keys file, renewed by renaming as secret stores do."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._run("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=drill -keyout ca.key -out ca.pem")
        self.renew("server")
        self.renew("node")
        self.trust = ssl.create_default_context(cafile=folder / "ca.pem")

    def _run(self, words: str):
        subprocess.run(["openssl", *words.split()], check=True, capture_output=True, cwd=self.folder)

    def renew(self, name: str):
        self._run(f"req -newkey rsa:2048 -nodes -subj /CN={name} -addext subjectAltName=IP:127.0.0.1 -keyout {name}.key.new -out {name}.csr")
        self._run(f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy -days 2 -out {name}.pem.new")
        for kind in ("key", "pem"):
            os.replace(self.folder / f"{name}.{kind}.new", self.folder / f"{name}.{kind}")

    def keys(self, **rights: str):
        lines = [f"{name} {hashlib.sha256(key_of(name).encode()).hexdigest()} {may}\n" for name, may in rights.items()]
        (self.folder / "keys.new").write_text("".join(lines))
        os.replace(self.folder / "keys.new", self.folder / "keys")

    def node(self) -> list[str]:
        return [word for key, file in (("cert", "node.pem"), ("key", "node.key"), ("ca", "ca.pem")) for word in ("--set", f"nodes.{key}={self.folder / file}")]


def key_of(name: str) -> str:
    return f"drill-{name}"


def as_(gateway: "Gateway", name: str) -> dict:
    """Options of a client that trusts the drill's authority and has this key."""
    return {"ssl": gateway.trust, "additional_headers": {"Authorization": f"Bearer {key_of(name)}"}}


class Gateway(Process):
    """`parley gateway` with TLS at ports that stay; ready once constructed."""

    def __init__(self, files: Files, name: str, port: int, nodes_port: int, peer: int, logs: list[Path]):
        logs.append(files.folder / f"{name}.{len(logs)}.log")
        self.name, self.nodes, self.trust = name, f"127.0.0.1:{nodes_port}", files.trust
        self.http, self.realtime = f"https://127.0.0.1:{port}", f"wss://127.0.0.1:{port}/v1/realtime"
        super().__init__(logs[-1], "gateway", "--port", str(port), "--nodes-port", str(nodes_port), "--tls", "file",
                         "--set", f"tls.cert={files.folder / 'server.pem'}", "--set", f"tls.key={files.folder / 'server.key'}", "--set", f"auth.keys_file={files.folder / 'keys'}",
                         "--set", f"journal.dir={files.folder / name}", "--set", f"nodes.name={name}", "--set", f"nodes.peers=127.0.0.1:{peer}", *files.node(), *LINKS, *ROOMY)
        line = self.process.stdout.readline().strip()
        assert line == f"ready {self.http}", (line, self.log.read_text())

    def ask(self, path: str, key: str = "watch") -> str:
        request = urllib.request.Request(self.http + path, headers={"Authorization": f"Bearer {key_of(key)}"})
        with urllib.request.urlopen(request, timeout=60, context=self.trust) as answer:
            return answer.read().decode()

    def metric(self, pattern: str) -> float:
        return sum(float(value) for value in re.findall(rf"^{pattern} (\S+)$", self.ask("/metrics"), re.M))

    def workers_up(self) -> int:
        return sum(each["state"] == "up" for each in json.loads(self.ask("/status"))["workers"])


class Conversation(Paced):
    def __init__(self, servers: list, seed: int, key: str):
        self.key = key
        super().__init__(servers, seed, UNITS, 1.0)

    def client_of(self, servers) -> Returning:
        return Returning(servers, "audio", **as_(servers[0], self.key))


class Crowd:
    """So many people, who begin another conversation whenever one is over, each with the key of that moment."""

    def __init__(self, gateways: list, people: int):
        self.gateways, self.key, self.open = gateways, "talk-a", True
        self.over: list[Conversation] = []
        self.turned_away = 0
        self.talking: dict[int, Conversation] = {}
        self._threads = [threading.Thread(target=self._person, args=(number,), daemon=True) for number in range(people)]
        for thread in self._threads:
            thread.start()
            time.sleep(1 / people)  # not all in the same moment of a second

    def _person(self, number: int):
        both = [0, 1] if number % 2 else [1, 0]
        while self.open:
            try:
                self.talking[number] = Conversation([self.gateways[each] for each in both], number + 1, self.key)
            except (OSError, InvalidHandshake, Closed):  # that gateway is being updated
                self.turned_away += 1
                both.reverse()
                continue
            self.over.append(self.talking[number].finish())

    def uses(self, key: str) -> bool:
        return any(each.key == key and len(each.answered) < UNITS and each.problem is None for each in list(self.talking.values()))

    def finish(self) -> list[Conversation]:
        self.open = False
        for thread in self._threads:
            thread.join(UNITS + 120)
        return self.over


class Prometheus:
    def __init__(self, files: Files, targets: list[str]):
        self.port = free_port()
        self.began = time.time()
        (files.folder / "watch.key").write_text(key_of("watch"))
        (files.folder / "prometheus.yaml").write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": f"{PROMETHEUS_SECONDS}s", "evaluation_interval": f"{PROMETHEUS_SECONDS}s"},
            "rule_files": [str(ROOT / "docs/alerts.yaml")],
            "scrape_configs": [{"job_name": "parley", "scheme": "https", "tls_config": {"ca_file": str(files.folder / "ca.pem")},
                                "authorization": {"credentials_file": str(files.folder / "watch.key")}, "static_configs": [{"targets": targets}]}]}))
        self.process = subprocess.Popen([program("prometheus"), f"--config.file={files.folder / 'prometheus.yaml'}", f"--storage.tsdb.path={files.folder / 'tsdb'}",
                                         f"--web.listen-address=127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=open(files.folder / "prometheus.log", "w"), env=os.environ | ENVIRONMENT)

    def ask(self, path: str) -> dict:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)["data"]

    def watches(self, count: int) -> bool:
        try:
            return sum(each["health"] == "up" for each in self.ask("targets")["activeTargets"]) == count
        except OSError:
            return False

    def fired(self) -> set[str]:
        span = f"start={self.began}&end={time.time()}&step={PROMETHEUS_SECONDS}s"
        found = self.ask(f"query_range?query=ALERTS%7Balertstate%3D%22firing%22%7D&{span}")
        return {each["metric"]["alertname"] for each in found["result"]}

    def end(self):
        self.process.terminate()
        self.process.wait(60)


def spend(gateway: Gateway) -> tuple[str, str]:
    """A chat with a key of few tokens, until it has none left: the session's id, and the code of its end."""
    with Client(gateway, "chat", **as_(gateway, "small")) as client:
        client.init()
        for _ in range(1000):
            client.send({"type": "input.append", "input": {"messages": [{"role": "user", "content": "Say something."}]}})
            event = client.until("response.done", "error")
            if event["type"] == "error":
                return client.heard[0].get("session_id") or client.until("session.closed")["session_id"], event["error"]["code"]
    return "", "it never ended"


def try_keys(gateways: list, enough: threading.Event):
    """A few times a second, for as long as it may."""
    while not enough.wait(0.2):
        for gateway in gateways:
            try:
                Client(gateway, **as_(gateway, "guessed"))
            except Exception:
                pass  # refused, or the gateway is being updated


def story(session_id: str, logs: list[Path]):
    print(f"-- {session_id}")
    for line in sorted(line for log in logs for line in log.read_text().splitlines() if session_id in line):
        print("   " + line)


def drill(folder: Path, people: int, seconds: float, started: list[subprocess.Popen]) -> int:
    files = Files(folder)
    rights = {"watch": "", "talk-a": "", "small": "tokens_per_day=3000"}
    files.keys(**rights)
    (folder / "one").mkdir(mode=0o700)
    small_disk = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g,mode=0700", "none", folder / "one"], capture_output=True).returncode == 0
    ports = []
    while len(ports) < 4:
        if (port := free_port() + len(ports)) not in ports:
            ports.append(port)
    logs: list[Path] = []

    def start(number: int) -> Gateway:
        made = Gateway(files, ("one", "two")[number], ports[number], ports[2 + number], ports[3 - number], logs)
        started.append(made.process)
        return made

    gateways = [start(0), start(1)]
    both = " ".join(each.nodes for each in gateways)

    def start_worker(name: str) -> Process:
        logs.append(folder / f"{name}.{len(logs)}.log")
        made = worker(logs[-1], both, "--set", "engine.seed=7", "--set", f"worker.max_sessions={people}", "--set", f"nodes.name={name}", *files.node(), *LINKS, *ROOMY)
        started.append(made.process)
        return made

    workers = {name: start_worker(name) for name in ("w1", "w2", "w3")}
    for each in gateways:
        wait_until(lambda each=each: each.workers_up() == 3, "three workers")
        each.logged("sessions are copied to another gateway")
    prometheus = Prometheus(files, [each.http.removeprefix("https://") for each in gateways])
    started.append(prometheus.process)
    wait_until(lambda: prometheus.watches(2), "Prometheus watches both gateways")

    began = time.monotonic()
    faults: list[str] = []

    def say(what: str):
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    def wait_for(at: float):
        time.sleep(max(0.0, began + at - time.monotonic()))

    def reload(pattern: str, processes: list):
        for each in processes:
            before = len(re.findall(pattern, each.log.read_text()))
            each.send(1)  # SIGHUP
            wait_until(lambda: len(re.findall(pattern, each.log.read_text())) > before, f"{pattern} in {each.log}")

    enough = threading.Event()
    thief = threading.Thread(target=try_keys, args=(gateways, enough), daemon=True)
    thief.start()
    crowd = Crowd(gateways, people)
    say(f"{people} people talk, and somebody tries keys")

    spent, code = spend(gateways[0])
    say(f"a key has used up its 3000 tokens: {code}")
    if code != "quota_exceeded":
        faults.append(f"the end of a budget was {code}")

    wait_for(0.12 * seconds)
    assert workers["w2"].end() == 0
    workers["w2"] = start_worker("w2")
    wait_until(lambda: all(each.workers_up() == 3 for each in gateways), "w2 is back")
    say("worker w2 was updated")

    wait_for(0.2 * seconds)
    files.keys(**rights, **{"talk-b": ""})
    reload(r"keys: 4 \(1 new, 0 gone\)", gateways)
    crowd.key = "talk-b"
    say("there is a new key, and whoever begins uses it")

    wait_for(0.28 * seconds)
    files.renew("server")
    files.renew("node")
    reload("the certificate was read again", gateways)
    reload("the certificates of nodes were read again", list(workers.values()))
    say("all certificates were renewed")

    wait_for(0.38 * seconds)
    assert gateways[1].end() == 0
    gone = time.monotonic()
    gateways[1] = start(1)
    say(f"gateway two was updated: {time.monotonic() - gone:.1f} s")

    wait_until(lambda: not crowd.uses("talk-a"), "conversations with the old key are over", 2 * UNITS)
    del rights["talk-a"]
    files.keys(**rights, **{"talk-b": ""})
    reload(r"keys: 3 \(0 new, 1 gone\)", gateways)
    say("the old key is gone")

    expected = {"ParleyKeysTried"}
    if small_disk:
        wait_for(0.62 * seconds)
        expected.add("ParleyJournalLost")
        ballast = folder / "one" / "ballast"
        with open(ballast, "wb") as file:
            try:
                while file.write(bytes(1 << 20)):
                    file.flush()
            except OSError:
                pass
        say("the disk of gateway one's journal is full")
        wait_until(lambda: gateways[0].metric("parley_journal_lost_sessions_total") > 0, "conversations are no longer kept", 60)
        wait_until(lambda: "ParleyJournalLost" in prometheus.fired(), "ParleyJournalLost fires", 60)
        ballast.unlink()
        say("ParleyJournalLost has fired; the disk has room again")
    else:
        say("NOT TRIED: a disk that fills; there is no permission to mount one")

    wait_for(seconds)
    over = crowd.finish()
    enough.set()
    thief.join()
    say("all have said goodbye")
    end = time.monotonic() + 60
    while not expected <= prometheus.fired() and time.monotonic() < end:
        time.sleep(PROMETHEUS_SECONDS)

    lost = [each for each in over if each.problem is not None]
    good = [each for each in over if each not in lost]
    late = sum(wait > 1 for each in good for wait in each.waits())
    print(f"conversations {len(good)} finished, {len(lost)} lost; {sum(len(each.client.returns) for each in good)} came back to another process, {crowd.turned_away} began at the other gateway; "
          f"{late} of {len(good) * UNITS} seconds were answered after more than a second")
    for each in lost[:10]:
        print(f"              lost: {each.problem!r}")
    fired = prometheus.fired()
    print(f"alerts        {', '.join(sorted(fired)) or 'none'}; expected: {', '.join(sorted(expected))}")
    returned = next((each.client.id for each in good if each.client.returns), "")
    text = "\n".join(log.read_text() for log in logs)
    moved = next((each.client.id for each in good if not each.client.returns and re.search(rf"{each.client.id} continues on worker", text)), "")
    print("three sessions as the logs of both gateways tell them: one whose gateway was updated, one whose worker was, and one whose key was used up")
    for session_id in (returned, moved, spent):
        if session_id:
            story(session_id, [log for log in logs if log.name.startswith(("one", "two"))])
        else:
            faults.append("a session that should be in the logs is not")

    prometheus.end()
    for each in (*workers.values(), *gateways):
        if each.end() != 0 or "invariant violated" in each.log.read_text():
            faults.append(f"{each.log} ended badly")
    if small_disk:
        subprocess.run(["umount", folder / "one"], check=True)
    if lost or fired != expected:
        faults.append("a conversation was lost" if lost else "other alerts than expected")
    print("drill:", "; ".join(faults) or "passed")
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=360)
    parser.add_argument("--folder", type=Path, help="where logs stay; otherwise they go when it passes")
    args = parser.parse_args()
    if "PARLEY_DRILL" not in os.environ:  # in a mount namespace of its own, for a disk that fills
        how = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
        if subprocess.run([*how, "true"], capture_output=True).returncode == 0:
            os.execvpe(how[0], [*how, sys.executable, *sys.argv], os.environ | {"PARLEY_DRILL": "1"})
    logging.getLogger("websockets.client").setLevel(logging.CRITICAL)  # it calls a cut connection an internal error
    started: list[subprocess.Popen] = []
    try:
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.folder or Path(temporary) / "drill"
            folder.mkdir(parents=True)
            return drill(folder, args.sessions, args.seconds, started)
    finally:
        for process in started:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
