#!/usr/bin/env python3
"""Fails when the code cites a page or a section of the specifications that is not there, or names a place in the reference by a file that no page
explains. A citation is a page and numbers of sections: `docs/protocol.md 6.2`, `docs/model/thinker.md 5.4, 6.3 and 7b`."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATIONS = [ROOT / "docs/protocol.md", *sorted((ROOT / "docs/model").glob("*.md"))]
KINDS = ("*.cpp", "*.hpp", "*.py", "*.js", "*.txt", "*.cmake", "*.toml", "*.sh", "*.jsonl", "*.md", "run", "test")
LEFT_OUT = (":!tests/data/goldens", ":!tests/data/checkpoints", ":!models", ":!tests/rules/citations.py")

NUMBER = r"\d+[a-z]?(?:\.\d+)*(?![\w%])"
CITATION = re.compile(rf"\b(docs/[\w/]+\.md)(?:,? sections?)?((?: {NUMBER}(?:(?:, | and | to |-){NUMBER})*)?)")
LINKED = re.compile(rf"\]\(([\w./]+\.md)\)((?: {NUMBER}(?:(?:, | and | to ){NUMBER})*))")  # a link from one page to a section of another
HEADING = re.compile(rf"^#+ ({NUMBER})\.? ", re.M)
MARGIN = re.compile(r"\n[ \t]*(?:///<|///|//|#|\*)?[ \t]*")  # where a comment continues on the next line
SHORTHAND = re.compile(r"(?<![\w.:'\"/\\-])([A-Z][A-Z0-9]{0,4}):\d+")  # an abbreviated file name of the reference
PLACE = re.compile(r"(?<![\w./])((?:\w+/)?\w+\.py):\d+")
BARE = re.compile(r"(?<![\w/.])(?:PROTOCOL|THINKER|TALKER|E2E|CHECKPOINT|DESIGN|PROTOCOL_EXTENSIONS|PUBLISHED_WEIGHTS)\.md")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *KINDS, *LEFT_OUT],
                            capture_output=True, check=True).stdout
    return [path for name in listed.decode().split("\0") if name and (path := ROOT / name).is_file()]


def sections(page: Path) -> set[str]:
    return set(HEADING.findall(page.read_text(encoding="utf-8")))


def comments(path: Path, text: str) -> str:
    """The prose of a file: all of a page or a data file, only the comments of code."""
    if path.suffix in (".md", ".jsonl"):
        return text
    return "\n".join(line for line in text.splitlines() if re.search(r'//|#|^\s*\*|"""', line))


def problems(path: Path, known: dict[str, set[str]], explained: set[str]):
    text = path.read_text(encoding="utf-8")
    linked = [(str((path.parent / page).resolve().relative_to(ROOT)), numbers) for page, numbers in LINKED.findall(text)]
    for page, numbers in CITATION.findall(MARGIN.sub(" ", text)) + linked:
        if not (ROOT / page).is_file():
            yield f"{page} is not there", 0
        elif page in known:
            for number in re.findall(NUMBER, numbers):
                if number not in known[page]:
                    yield f"{page} has no section {number}", 0
        yield None, 1
    yield from ((f"{name} should be a page of docs/", 0) for name in BARE.findall(text))
    prose = comments(path, text)
    yield from ((f"{name} stands for a file that no page explains", 0) for name in SHORTHAND.findall(prose))
    for name in PLACE.findall(prose):
        if name not in explained:
            yield f"{name} is in no specification's table of sources", 0


def main() -> int:
    known = {str(page.relative_to(ROOT)): sections(page) for page in SPECIFICATIONS}
    explained = set(re.findall(r"[`/]((?:s3tokenizer/)?\w+\.(?:py|txt|cpp))`", "".join(page.read_text(encoding="utf-8") for page in SPECIFICATIONS)))
    cited, found = 0, []
    for path in tracked():
        for problem, count in problems(path, known, explained):
            cited += count
            if problem:
                found.append(f"{path.relative_to(ROOT)}: {problem}")
    print(*found, sep="\n")
    print(f"{cited} citations, {len(found)} wrong")
    return 1 if found or not cited else 0


if __name__ == "__main__":
    sys.exit(main())
