#!/usr/bin/env python3
"""Checks the events of tests/data/transcripts against tests/data/protocol.schema.json."""
import base64
import json
import re
import struct
import sys
from pathlib import Path

from jsonschema import Draft202012Validator

DATA = Path(__file__).resolve().parents[1] / "data"
SCHEMA = json.loads((DATA / "protocol.schema.json").read_text(encoding="utf-8"))
SERVER = {"current": "currentServerEvent", "legacy": "legacyServerEvent", None: "currentServerEvent"}
TYPES = {
    "session.queued", "session.queue_update", "session.queue_done", "session.created", "response.output.delta", "response.output_audio.delta",
    "response.listen", "response.done", "session.go_away", "session.closed", "error",
}


def validator(entry: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{entry}", "$defs": SCHEMA["$defs"]})


def expanded(value):
    if isinstance(value, dict):
        return {key: expanded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [expanded(each) for each in value]
    if isinstance(value, str) and (short := re.fullmatch(r"\$pcm:(\d+)", value)):
        return base64.b64encode(struct.pack("<f", 0.25) * int(short[1])).decode()
    return value


def main() -> int:
    wrong, seen, events = [], set(), 0
    for path in sorted((DATA / "transcripts").glob("*.jsonl")):
        head, *lines = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
        closed = False
        for number, line in enumerate(lines, 2):
            if line["from"] != "server":
                continue
            if closed:
                wrong.append(f"{path.name}:{number}: after the close")
            closed = "close" in line
            if closed:
                continue
            event = expanded(line["event"])
            events += 1
            seen.add(event["type"])
            errors = validator(SERVER[head["dialect"]]).iter_errors(event)
            wrong += [f"{path.name}:{number}: {error.message[:200]}" for error in errors]
        if not closed:
            wrong.append(f"{path.name}: ends without a close")
    wrong += [f"no transcript has a {each}" for each in sorted(TYPES - seen)]
    print(*wrong, sep="\n")
    print(f"{events} server events, {len(wrong)} wrong")
    return 1 if wrong or not events else 0


if __name__ == "__main__":
    sys.exit(main())
