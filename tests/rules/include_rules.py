#!/usr/bin/env python3
"""Checks every include in the tree. Fails on one that points up the ladder of layers or uses a library in the wrong
folder."""
import re
import sys
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
    r"prometheus/": {"actors", "net"},
    r"boost/": {"net", "client"},
    r"nlohmann/": {"grammar", "protocol", "inference", "net"},
    r"CLI/": {"app"},
    r"toml\+\+/": {"config"},
}
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


def main() -> int:
    files = [f for top in [*ALLOWED, "tests", "bench"] for f in sorted((ROOT / top).rglob("*.[ch]pp"))]
    found = [f"{f.relative_to(ROOT)}: {p}" for f in files for p in problems(f)]
    # Boost's assertions must end in net/boost_assert.cpp everywhere, and these are compiled without knowing of it.
    outside = (f for f in files if layer_of(f)[0] in {"app", "actors", "config", "grammar", "protocol", "conversation", "base"})
    found += [f"{f.relative_to(ROOT)}: its includes lead to Boost" for f in outside if reaches_boost(f)]
    print(*found, sep="\n")
    print(f"{len(files)} files, {len(found)} forbidden includes")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
