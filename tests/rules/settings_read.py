#!/usr/bin/env python3
"""Fails on a setting that nothing reads: each key's member must be used, next to its section, in a file outside config/
and tests/."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READERS = ("protocol", "inference", "actors", "net", "client", "app")


def main() -> int:
    members = re.findall(r'key\{"([a-z_.]+)",\s*PARLEY_MEMBER\(([a-z_]+)\.([a-z_]+)\)', (ROOT / "config/keys.cpp").read_text())
    listed = (ROOT / "config/parley.toml").read_text()
    texts = [f.read_text() for folder in READERS for f in sorted((ROOT / folder).rglob("*.[ch]pp"))]
    unread = []
    for name, section, member in members:
        uses = re.compile(rf"\.{section}\b[^;]*?\.{member}\b|\.{section};.*?\.{member}\b", re.S)
        if not any(uses.search(text) for text in texts):
            unread.append(name)
        if not re.search(rf"^{re.escape(name.split('.')[1])} = ", listed, re.M):
            unread.append(f"{name} (not in config/parley.toml)")
    section, defaults = "", {}
    for line in listed.splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        if " = " in line and not line.startswith("#"):
            key, value = line.split(" = ", 1)
            defaults[f"{section}.{key}"] = value
    rows = re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| `([^`]*)` \|", (ROOT / "docs/operations.md").read_text(), re.M)
    unread += [f"docs/operations.md: {name} is {defaults.get(name)}, not {value}" for name, value in rows if defaults.get(name) != value]
    if not rows:
        unread.append("docs/operations.md has no table of settings")
    print(*unread, sep="\n")
    print(f"{len(members)} settings, {len(unread)} that nothing reads")
    return 1 if unread or not members else 0


if __name__ == "__main__":
    sys.exit(main())
