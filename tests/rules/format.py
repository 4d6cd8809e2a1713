#!/usr/bin/env python3
"""Fails if clang-format would change a C++ file. To format all of them: git ls-files '*.[ch]pp' | xargs clang-format
-i"""
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("base", "conversation", "config", "protocol", "inference", "actors", "net", "client", "app", "tests", "bench")
AT_ONCE = 50


def look(files: list[str]) -> str:
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *files], cwd=ROOT, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main() -> int:
    files = [str(f.relative_to(ROOT)) for folder in FOLDERS for f in sorted((ROOT / folder).rglob("*.[ch]pp"))]
    with ThreadPoolExecutor() as pool:
        found = "".join(pool.map(look, (files[at : at + AT_ONCE] for at in range(0, len(files), AT_ONCE))))
    print(found)
    print(f"{len(files)} files, {found.count('[-Wclang-format-violations]')} places to format")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
