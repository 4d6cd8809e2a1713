#!/usr/bin/env python3
"""Checks the samples that a program prints against tests/data/protocol.schema.json. Usage: schema_test.py
PRINT_SAMPLES"""
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from jsonschema import Draft202012Validator

SCHEMA = json.loads((Path(__file__).resolve().parents[1] / "data" / "protocol.schema.json").read_text(encoding="utf-8"))


def event_types(entry: str) -> set[str]:
    """The `type` of every event that an entry of the schema allows."""
    names = [choice["$ref"].rsplit("/", 1)[1] for choice in SCHEMA["$defs"][entry]["oneOf"]]
    return {SCHEMA["$defs"][name]["properties"]["type"]["const"] for name in names}


def main(program: str) -> int:
    Draft202012Validator.check_schema(SCHEMA)
    validators: dict[str, Draft202012Validator] = {}
    seen: dict[str, set[str]] = {}
    count: Counter[str] = Counter()
    wrong = []
    printed = subprocess.run([program], check=True, capture_output=True).stdout.decode("utf-8", errors="strict")
    for line in printed.rstrip("\n").split("\n"):
        verdict, entry, text = line.split("\t", 2)
        if entry not in validators:
            validators[entry] = Draft202012Validator({"$ref": f"#/$defs/{entry}", "$defs": SCHEMA["$defs"]})
        event = json.loads(text, parse_constant=lambda name: wrong.append(f"{name} in {text[:200]}"))
        errors = [error.message[:200] for error in validators[entry].iter_errors(event)]
        if bool(errors) == (verdict == "good"):
            wrong.append(f"{verdict} {entry}: {text[:300]} {errors}")
        if verdict == "good":
            seen.setdefault(entry, set()).add(event["type"])
        count[verdict] += 1
    for entry, types in seen.items():
        if missing := event_types(entry) - types:
            wrong.append(f"no good sample of {entry} for {sorted(missing)}")
    if len(seen) != 5 or count["bad"] < 20:
        wrong.append(f"too few samples: {sorted(seen)}, {count['bad']} bad ones")
    print(*wrong, sep="\n")
    print(f"{count['good']} good and {count['bad']} bad samples, {len(wrong)} wrong verdicts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
