#!/usr/bin/env python3
"""lint.py BUILD checks that every file is compiled with warnings as errors, and runs clang-tidy on every source of our layers that does not
include LibTorch (which takes minutes to parse). Clean results are cached in PARLEY_CACHE/lint, for all checkouts, until the source, one of our
headers that it includes, its flags, the checks, the tool or the machine's libraries change."""
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from include_rules import ALLOWED, INCLUDE, ROOT

TORCH = re.compile(r"(ATen|c10|torch)/")
TIDY = Path(sys.executable).with_name("clang-tidy")  # from scripts/requirements.tests.txt
CACHE = Path(os.environ.get("PARLEY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley")
KEPT_DAYS = 30
BATCH = 8  # sources that clang-tidy reads as one
# Options for GCC alone: those of its precompiled headers, and its warnings, which are errors in the build.
STRANGE = re.compile("-fpch-preprocess|-W.*|-mprefer-vector-width=.*")


@functools.cache
def includes(path: Path) -> list[tuple[str, str]]:
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


@functools.cache
def digest(path: Path) -> str:
    return f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}"


def seen_by(source: Path) -> tuple[list[Path], set[str]]:
    """Our files that a source consists of, and the other headers that they include."""
    ours, others, waiting = set(), set(), [source]
    while waiting:
        path = waiting.pop()
        if path in ours:
            continue
        ours.add(path)
        for kind, target in includes(path):
            if kind == '"' and (ROOT / target).is_file():
                waiting.append(ROOT / target)
            else:
                others.add(target)
    return sorted(ours), others


def flags_of(command: str) -> list[str]:
    words, out = iter(shlex.split(command)[1:]), []
    for word in words:
        if word in ("-include", "-o", "-c"):
            next(words)
        elif not STRANGE.fullmatch(word):
            out.append(word)
    return out


def machine() -> str:
    """The tool, its checks, and the paths of system headers."""
    commands = [TIDY, "--version"], [TIDY, "--dump-config"], ["dpkg-query", "-W", "*-dev"]
    return "".join(subprocess.run(c, cwd=ROOT, capture_output=True, text=True, check=True).stdout for c in commands)


def look(source: Path, flags: tuple[str, ...], *more: str) -> str:
    command = [TIDY, f"--config-file={ROOT}/.clang-tidy", "--quiet", *more, source, "--", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    return done.stdout + ("" if done.stdout else done.stderr)


def look_at(batch: list[Path], flags: tuple[str, ...]) -> dict[Path, str]:
    """The findings in each source. A batch is read as one source, which costs little more than a single one because they share most headers. If
    anything is found, or the sources clash, each half is read by itself."""
    if len(batch) == 1:
        return {batch[0]: look(batch[0], flags)}
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as whole:
        whole.write("".join(f'#include "{source}"\n' for source in batch))
        whole.flush()
        # This one check would always complain about the combined source; include_rules.py finds whoever includes a
        # source file.
        if not look(Path(whole.name), flags, "--checks=-bugprone-suspicious-include"):
            return {source: "" for source in batch}
    middle = len(batch) // 2
    return look_at(batch[:middle], flags) | look_at(batch[middle:], flags)


def sources_of(entry: dict) -> list[Path]:
    """The sources that a command compiles: one, or several that CMake has joined."""
    file = Path(entry["file"])
    if file.parent.name != "Unity":
        return [file]
    return [Path(path) for path in re.findall(r'^#include "(.+)"$', file.read_text(encoding="utf-8"), re.M)]


def main() -> int:
    build, remembered = Path(sys.argv[1]).resolve(), CACHE / "lint"
    remembered.mkdir(parents=True, exist_ok=True)
    for old in remembered.iterdir():
        if old.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            old.unlink(missing_ok=True)
    given, alike, keys, bad = machine(), {}, {}, 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not entry["file"].endswith((".cpp", ".cxx")):
            continue  # the assembler's
        if "-Werror" not in entry["command"].split():
            print(f"{entry['file']}: compiled without -Werror")
            bad += 1
        flags = flags_of(entry["command"])
        said = " ".join(flags).replace(str(ROOT), ".").replace(str(CACHE), "cache")
        for source in sources_of(entry):
            if source in keys or not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in ALLOWED:
                continue  # compiled for two targets, or generated
            ours, others = seen_by(source)
            if any(map(TORCH.match, others)):
                continue
            keys[source] = hashlib.sha256("\n".join([given, said, *map(digest, ours)]).encode()).hexdigest()
            if (remembered / keys[source]).exists():
                (remembered / keys[source]).touch()
            else:
                alike.setdefault(tuple(flags), []).append(source)
    batches = [(sources[at : at + BATCH], flags) for flags, sources in alike.items() for at in range(0, len(sources), BATCH)]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for found_in in pool.map(lambda batch: look_at(*batch), batches):
            for source, found in found_in.items():
                if found:
                    bad += 1
                    print(found, flush=True)
                else:
                    (remembered / keys[source]).touch()
    print(f"{len(keys)} files, {sum(map(len, alike.values()))} looked at, {bad} with findings")
    return 1 if bad or not keys else 0


if __name__ == "__main__":
    sys.exit(main())
