#!/usr/bin/env python3
"""A herd: the server of many chats is killed in the middle of the run, and all clients come back to the next process at once.
  bench/herd.py [--sessions 2000] [--seconds 60] [--folder /tmp]
`stub_server` with journal.dir, and `parley load` in chat mode, whose clients return by the rule of docs/protocol.md 14. Prints how long it took
them from the break until their session was resumed, how many did not get back, and when the last file of the journal was gone."""
import argparse
import json
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def serve(binary: str, port: int, folder: str, log: Path) -> subprocess.Popen:
    flags = [f"server.port={port}", f"journal.dir={folder}/journal", "limits.connections=20000"]
    begin = log.stat().st_size if log.exists() else 0
    with log.open("a") as output:
        server = subprocess.Popen([binary, *flags], stdout=output, stderr=output)
    while "ready " not in log.read_text()[begin:]:
        assert server.poll() is None, log.read_text()[-2000:]
        time.sleep(0.01)
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--think", type=int, default=10, help="mean seconds between an answer and the next question")
    parser.add_argument("--folder", default="/tmp", help="the journal is written to a new folder in it")
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    args = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ramp = args.sessions / 100
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        server = serve(args.build + "/stub_server", port, folder, Path(folder) / "log")
        try:
            command = [args.build + "/parley", "load", "--url", f"http://127.0.0.1:{port}", "--mode", "chat", "--sessions", str(args.sessions), "--think", str(args.think)]
            load = subprocess.Popen([*command, "--seconds", str(args.seconds), "--ramp", str(ramp), "--json", f"{folder}/load.json"], stdout=subprocess.PIPE, text=True)
            time.sleep(ramp + args.seconds / 3)
            server.send_signal(signal.SIGKILL)
            server.wait()
            waiting = len(list((Path(folder) / "journal").glob("*.session")))
            server = serve(args.build + "/stub_server", port, folder, Path(folder) / "log")
            print(f"killed with {waiting} sessions in its journal")
            table, _ = load.communicate(timeout=args.seconds * 3 + 60)
            print(table, end="")
            figures = json.loads((Path(folder) / "load.json").read_text())
            print(f"return: {figures['milliseconds'].get('return')}\nerrors: {figures.get('errors')}")
            over = time.monotonic()
            while (left := len(list((Path(folder) / "journal").glob("*.session")))) and time.monotonic() - over < 10:
                time.sleep(0.05)
            print(f"files left in the journal {time.monotonic() - over:.2f} s after the end: {left}")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait()


if __name__ == "__main__":
    main()
