#!/usr/bin/env python3
"""Fails when a documentation page names, in backticks or as a link, a path that does not exist."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md", "bench/history.md", "bench/gpu/README.md",
                                "train/README.md", "tests/data/README.md")]
PAGES += sorted((ROOT / "models").glob("*/*.md")) + sorted((ROOT / "docs").rglob("*.md"))
ROOMS = "actors|app|base|bench|client|cmake|config|conversation|docs|inference|models|net|packaging|protocol|python|scripts|tests|train|web"
PLACE = re.compile(rf"`((?:{ROOMS})/[\w./-]+)`")
LINK = re.compile(r"\]\(([\w./-]*)(?:#([\w-]+))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.M)
ENDINGS = ("", ".hpp", ".cpp", ".py")


def anchors(page: Path) -> set[str]:
    """The anchors that links may name after `#`, as forges derive them from headings."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(page.read_text(encoding="utf-8"))}


def missing(page: Path):
    text = page.read_text(encoding="utf-8")
    for name in PLACE.findall(text):
        if not any((base / (name + ending)).exists() for base in (ROOT, page.parent) for ending in ENDINGS):
            yield name
    for name, anchor in LINK.findall(re.sub(r"`[^`]*`", "", text)):  # code is not searched for links
        target = page.parent / name if name else page
        if not target.exists():
            yield name
        elif anchor and anchor not in anchors(target):
            yield f"{name}#{anchor}"


def main() -> int:
    lost = [f"{page.relative_to(ROOT)}: {name}" for page in PAGES if page.exists() for name in missing(page)]
    named = sum(len(PLACE.findall(page.read_text(encoding="utf-8"))) for page in PAGES if page.exists())
    print(*lost, sep="\n")
    print(f"{named} places named, {len(lost)} not there")
    return 1 if lost or not named else 0


if __name__ == "__main__":
    sys.exit(main())
