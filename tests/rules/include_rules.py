#!/usr/bin/env python3
"""Checks every include in the tree. Fails on one that points up the ladder of layers or uses a library in the wrong
folder, and on rooms that include each other in a circle. A room is a folder inside a layer, or a file beside such folders."""
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# layer -> what it may include of ours: whole folders or single headers
ENGINE_API = {"inference/engine.hpp"}
ALLOWED = {
    "base": set(),
    "conversation": {"base"},
    "grammar": {"base"},
    "config": {"base", "conversation"},
    "protocol": {"base", "conversation", "grammar"},
    "inference": {"base", "conversation", "config", "grammar"},
    "actors": {"base", "conversation", "protocol", "config"} | ENGINE_API,
    "net": {"base", "conversation", "protocol", "config", "actors/gateway_api.hpp", "actors/cluster/node_socket.hpp", "actors/recording/recordings_api.hpp", "actors/principal.hpp"},
    "client": {"base", "conversation", "protocol", "config", "net/stream.hpp"},
    "app": {"base", "conversation", "config", "grammar", "protocol", "inference", "actors", "net", "client"},
}
# library -> where it may be used; tests and benches of a layer count as that layer
LIBRARIES = {
    r"(ATen|c10|torch)/": {"inference"},
    r"caf/": {"actors"},
    r"rtc/": {"net"},
    r"opus/": {"protocol"},
    r"prometheus/": {"actors", "net"},
    r"boost/": {"net", "client"},
    r"nlohmann/": {"grammar", "protocol", "inference", "net"},
    r"CLI/": {"app"},
    r"toml\+\+/": {"config"},
}
# (from, to) -> why a room may include one that includes it. Only what is needed may stand here, and never more than now.
CIRCLES: dict[tuple[str, str], str] = {
}
MOST_CIRCLES = 0
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def layer_of(path: Path) -> tuple[str, bool]:
    """The layer whose rules hold for a file, and whether it is a test or a bench (those may include what they test, and tests/support)."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "tests" and len(parts) > 2:
        return parts[1], True
    return parts[0], parts[0] in ("tests", "bench")


def problems(path: Path):
    layer, is_test = layer_of(path)
    for kind, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
        if target.endswith((".cpp", ".cc")):
            yield f"includes the source file {target}"
        if kind == '"':
            folder = target.split("/")[0]
            if folder not in ALLOWED:
                if folder not in ("tests", "bench") or not is_test:
                    yield f'"{target}" is not a path from the project root'
            elif layer in ALLOWED and folder != layer and folder not in ALLOWED[layer] and target not in ALLOWED[layer]:
                yield f'{layer}/ may not include "{target}"'
        else:
            for pattern, rooms in LIBRARIES.items():
                if re.match(pattern, target) and layer in ALLOWED and layer not in rooms:
                    yield f"<{target}> belongs to {', '.join(sorted(rooms))}"


def reaches_boost(path: Path) -> bool:
    """Whether an include of a file leads to a header of Boost, over headers of ours."""
    seen, left = set(), [path]
    while left:
        for kind, target in INCLUDE.findall(left.pop().read_text(encoding="utf-8")):
            if kind == "<" and target.startswith("boost/"):
                return True
            if kind == '"' and target not in seen and (ROOT / target).is_file():
                seen.add(target)
                left.append(ROOT / target)
    return False


def room_of(path: str) -> str:
    """`actors/queue` for a file in that folder, `actors/messages` for a file of that name beside the folders."""
    folder, name = path.rsplit("/", 1)
    return folder if "/" in folder else f"{folder}/{name.split('.')[0]}"


def circles(includes: dict[str, set[str]]) -> list[list[str]]:
    """The rooms that reach each other (Tarjan's strongly connected components of more than one)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(room: str) -> None:
        number[room] = low[room] = len(number)
        stack.append(room)
        for other in sorted(includes.get(room, ())):
            if other not in number:
                visit(other)
            if other in stack:
                low[room] = min(low[room], low[other])
        if low[room] == number[room]:
            members = stack[stack.index(room):]
            del stack[stack.index(room):]
            if len(members) > 1:
                found.append(sorted(members))

    for room in sorted(includes):
        if room not in number:
            visit(room)
    return found


def room_problems(files: list[Path]):
    edges: dict[tuple[str, str], str] = {}
    for file in files:
        path = str(file.relative_to(ROOT))
        for kind, target in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if kind == '"' and room_of(target) != room_of(path):
                edges.setdefault((room_of(path), room_of(target)), path)

    def without(left_out) -> dict[str, set[str]]:
        rooms = defaultdict(set)
        for a, b in edges:
            if (a, b) not in left_out:
                rooms[a].add(b)
        return rooms

    for members in circles(without(CIRCLES)):
        ways = [f"{a} -> {b} ({path})" for (a, b), path in sorted(edges.items()) if a in members and b in members]
        yield f"rooms in a circle: {', '.join(members)}\n  " + "\n  ".join(ways)
    for each in CIRCLES:
        if not circles(without(set(CIRCLES) - {each})):
            yield f"CIRCLES: {each[0]} -> {each[1]} is not needed any more"
    if len(CIRCLES) > MOST_CIRCLES:
        yield f"CIRCLES has grown to {len(CIRCLES)}"


def main() -> int:
    files = [f for top in [*ALLOWED, "tests", "bench"] for f in sorted((ROOT / top).rglob("*.[ch]pp"))]
    found = [f"{f.relative_to(ROOT)}: {p}" for f in files for p in problems(f)]
    # Boost's assertions must end in net/boost_assert.cpp everywhere, and these are compiled without knowing of it.
    outside = (f for f in files if layer_of(f)[0] in {"app", "actors", "config", "grammar", "protocol", "conversation", "base"})
    found += [f"{f.relative_to(ROOT)}: its includes lead to Boost" for f in outside if reaches_boost(f)]
    found += room_problems([f for f in files if f.relative_to(ROOT).parts[0] in ALLOWED])
    print(*found, sep="\n")
    print(f"{len(files)} files, {len(found)} forbidden includes")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
