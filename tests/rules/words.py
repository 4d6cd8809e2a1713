#!/usr/bin/env python3
"""Fails on a general word where the project has a term: each thing has one name (docs/architecture.md, glossary). The words are
those that somebody who is new here might well choose."""
import re
import sys
from pathlib import Path

from include_rules import ALLOWED, ROOT

# word -> the term to use instead, and the files where it is allowed
TERMS = {
    "house": ("server core, gateway, or the thing itself", {"tests/protocol/transcript.cpp"}),  # a speaker in transcripts
    "inbox": ("session_handle; the commands of an engine", set()),
    "tenancy": ("worker_lease", set()),
    "planner": ("scheduler", set()),
    "engine_load": ("engine_capacity; load is what the generator makes", set()),
    "worker_load": ("worker_capacity; load is what the generator makes", set()),
    "job_queue": ("scheduling_policy", set()),
    "alarm": ("deadline_timer", set()),
    "visitor": ("credentials, principal", set()),
    "requester": ("principal", set()),
    "stranger": ("an unknown peer", set()),
    "node_member": ("gateway_registration", set()),
}
WORD = re.compile(rf"\b({'|'.join(sorted(TERMS, key=len, reverse=True))})_?\b")


def problems(path: Path):
    name = str(path.relative_to(ROOT))
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        for word in WORD.findall(line):
            instead, allowed = TERMS[word]
            if name not in allowed:
                yield f"{name}:{number}: '{word}': say {instead}"


def main() -> int:
    files = [f for top in [*ALLOWED, "tests", "bench"] for f in sorted((ROOT / top).rglob("*.[ch]pp"))]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [p for f in files for p in problems(f)]
    print(*found, sep="\n")
    print(f"{len(files)} files, {len(TERMS)} words, {len(found)} used")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
