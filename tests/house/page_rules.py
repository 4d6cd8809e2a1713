#!/usr/bin/env python3
"""The page keeps to itself: no file of web/ names another host, no script or style stands inside the HTML, every file is embedded and used."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
HOST = re.compile(r"(?:\b[a-z][a-z0-9+.-]*:)?//(?=\S)", re.I)  # a comment has a space behind its slashes
REFERENCE = re.compile(r"""(?:src|href)="([^"]*)"|(?:from|import\(|addModule\()\s*"([^"]*)"|url\(([^)]*)\)""")
ROUTES = {"health", "ready", "status", "metrics", "v1/models", "api/default_ref_audio", "sessions"}  # of the server, not of the page


def references(text: str) -> list[str]:
    return [next(filter(None, found), "") for found in REFERENCE.findall(text)]


def problems():
    embedded = set(re.findall(r"^ {4}(\S+?)\)?$", (ROOT / "net/page.cmake").read_text().split("set(page_files", 1)[1].split(")", 1)[0] + "\n", re.M))
    files = {f.name: f for f in WEB.iterdir()}
    if embedded != set(files):
        yield f"net/page.cmake and web/ differ: {sorted(embedded ^ set(files))}"
    used = {"index.html"}
    for name, path in sorted(files.items()):
        if path.suffix == ".png":
            continue
        text = path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            if HOST.search(line):
                yield f"{name}:{number}: names a host: {line.strip()}"
        for reference in references(text):
            target = reference.removeprefix("./")
            used.add(target)
            if target not in files and target not in ROUTES | {"."}:
                yield f"{name}: refers to {reference!r}, which is not there"
        if path.suffix == ".html":
            if re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", text):
                yield f"{name}: has a script or style inside, which its own policy forbids"
    for name in sorted(set(files) - used):
        yield f"{name}: nothing refers to it"


def main() -> int:
    assert HOST.search('"https://a.example"') and HOST.search('src="//a.example/x.js"') and not HOST.search("// a comment")
    found = list(problems())
    print(*found, sep="\n")
    print(f"{len(list(WEB.iterdir()))} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
