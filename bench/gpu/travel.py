#!/usr/bin/env python3
"""What of this checkout travels to a machine with a GPU: tracked files, untracked ones that Git does not ignore, and build/gpu. Fails if it is too much.

    travel.py           how much that is
    travel.py aside     moves folders that no step there reads to build/aside; files keep their times, so nothing is built again
    travel.py back      moves them back"""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import plan

ROOT = Path(__file__).resolve().parents[2]
PACK = "build/gpu"
ASIDE = "build/aside"
# Read by tests and by training, by nothing that bench/gpu does.
UNREAD = ("tests/data/checkpoints/tiny-talker", "tests/data/goldens/talker", "train")
BLOCK = 512  # an archive has a header of a block for each file, and fills up its last one


def archived(size: int) -> int:
    return BLOCK + (size + BLOCK - 1) // BLOCK * BLOCK


def size_of(file: Path) -> int:
    """A link travels as a link."""
    return archived(0 if file.is_symlink() else file.stat().st_size)


def travelling(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=True)
    files = {root / name for name in listed.stdout.decode().split("\0") if name}
    return sorted(file for file in files | set((root / PACK).rglob("*")) if file.is_symlink() or file.is_file())


def mebibytes(files: list[Path]) -> float:
    return sum(map(size_of, files)) / 2**20


def move(root: Path, back: bool) -> None:
    for name in UNREAD:
        here, there = root / name, root / ASIDE / name
        source, target = (there, here) if back else (here, there)
        if not source.exists():
            continue
        if target.exists():
            raise SystemExit(f"travel: {target.relative_to(root)} is in the way")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(source, target)
    if back:
        shutil.rmtree(root / ASIDE, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("move", nargs="?", choices=["aside", "back"])
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    how = parser.parse_args()
    if how.move:
        move(how.root, how.move == "back")
    size = mebibytes(travelling(how.root))
    print(f"travel: {size:.1f} MiB of {plan.TRAVEL_MIB}")
    if size <= plan.TRAVEL_MIB or how.move == "back":
        return 0
    movable = [name for name in UNREAD if (how.root / name).exists()]
    print(f"travel: that is too much{'; `bench/gpu/travel.py aside` moves ' + ', '.join(movable) + ' away for the time' if movable else ''}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
