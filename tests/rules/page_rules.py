#!/usr/bin/env python3
"""The page must be self-contained: no file of web/ names another host, no script or style is inside the HTML, and every file is embedded and used.
Its texts are in one table, in every language, and nowhere else."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WEB = ROOT / "web"
HOST = re.compile(r"(?:\b[a-z][a-z0-9+.-]*:)?//(?=\S)", re.I)  # a comment has a space after its slashes
REFERENCE = re.compile(r"""(?:src|href)="([^"]*)"|"src":\s*"([^"]*)"|(?:from|import\(|addModule\(|SharedWorker\()\s*"([^"]*)"|url\(([^)]*)\)""")
ROUTES = {"health", "ready", "status", "metrics", "v1/models", "api/default_ref_audio", "sessions"}  # of the server, not of the page


def references(text: str) -> list[str]:
    return [next(filter(None, found), "") for found in REFERENCE.findall(text)]


# ---- the words
TEXT = r'"((?:[^"\\]|\\.)*)"'
ENTRY = re.compile(rf'^  "([\w.-]+)": \[\s*{TEXT},\s*{TEXT},?\s*\],$', re.M)
ASKED = re.compile(r"""\b(words|wordsOf)\(([^()]*(?:\([^()]*\)[^()]*)*)|data-word(?:-\w+)?="([^"]*)\"""")
NAME = re.compile(r'"([a-z][\w-]*(?:\.[\w.-]+)*)"|`([a-z]\w*)\.\$\{')
CHINESE = re.compile(r"[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")
BARE = re.compile(r"[A-Za-z]{2}")
UNTRANSLATED = re.compile(r"<(code|kbd|title)\b.*?</\1>|<button type=\"button\" data-file=.*?</button>|<!--.*?-->|<!doctype[^>]*>", re.S)


def word_table(text: str) -> dict[str, tuple[str, str]]:
    return {key: (english, chinese) for key, english, chinese in ENTRY.findall(text)}


def names_asked(text: str) -> tuple[set[str], set[str]]:
    """The names of texts that a file uses, and the groups of which it uses a member."""
    names, groups = set(), set()
    for kind, given, attribute in ASKED.findall(text):
        if attribute:
            names.add(attribute)
            continue
        found = NAME.findall(given)
        if kind == "wordsOf":
            groups.update(name for name, _ in found[:1])
            continue
        names.update(name for name, _ in found if name)
        groups.update(group for _, group in found if group)
    return names, groups


def word_problems(files: dict[str, str]):
    table = word_table(files["words.js"])
    lines = [line for line in files["words.js"].split("const WORDS = {", 1)[1].split("\n};", 1)[0].splitlines() if re.match(r'  "', line)]
    if len(lines) != len(table):
        yield f"words.js: {len(lines)} entries, of which {len(table)} are a name with two texts, each name once"
    for key, (english, chinese) in table.items():
        if not english or not chinese or CHINESE.search(english) or not (CHINESE.search(chinese) or english == chinese or not BARE.search(re.sub(r"\{\w+\}", "", chinese))):
            yield f"words.js: {key} is missing in a language"
        if sorted(re.findall(r"\{\w+\}", english)) != sorted(re.findall(r"\{\w+\}", chinese)):
            yield f"words.js: {key} is filled with other values in each language"
    used, groups = set(), set()
    for name, text in files.items():
        if name == "words.js":
            continue
        asked, of = names_asked(text)
        for key in asked - set(table):
            if "." in key or name.endswith(".html"):
                yield f"{name}: there are no words for {key!r}"
        for group in of:
            if not any(key.startswith(group + ".") for key in table):
                yield f"{name}: there are no words for the group {group!r}"
        used |= asked
        groups |= of
        if name.endswith(".js") and CHINESE.search(text):
            yield f"{name}: Chinese outside the table"
        if name.endswith(".html"):
            bare = re.sub(r"<[^>]*>", " ", UNTRANSLATED.sub(" ", text))
            if BARE.search(bare):
                yield f"{name}: words outside the table: {BARE.search(bare.replace(chr(10), ' ')).string.split()}"
            for attribute in re.findall(r'\b(?<!-)(?:title|placeholder|aria-label)="[^"]+"', text):
                yield f"{name}: words outside the table: {attribute}"
    for key in set(table) - used:
        if not any(key.startswith(group + ".") for group in groups):
            yield f"words.js: nothing asks for {key}"


def problems():
    embedded = set(re.findall(r"^ {4}(\S+?)\)?$", (ROOT / "net/page.cmake").read_text().split("set(page_files", 1)[1].split(")", 1)[0] + "\n", re.M))
    files = {f.name: f for f in WEB.iterdir()}
    if embedded != set(files):
        yield f"net/page.cmake and web/ differ: {sorted(embedded ^ set(files))}"
    yield from word_problems({name: path.read_text(encoding="utf-8") for name, path in sorted(files.items()) if path.suffix in (".js", ".html")})
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
    assert word_table('  "a.b": ["One {x}", "一 {x}"],\n  "c": [\n    "Two",\n    "二",\n  ],\n') == {"a.b": ("One {x}", "一 {x}"), "c": ("Two", "二")}
    assert names_asked("words(`state.${name}`, words('x')) words(a ? \"b.c\" : \"d\") wordsOf(\"e\", f, words(\"g.h\"))") == ({"b.c", "d"}, {"state", "e"})
    found = list(problems())
    print(*found, sep="\n")
    print(f"{len(list(WEB.iterdir()))} files, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
