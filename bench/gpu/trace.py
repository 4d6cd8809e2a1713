#!/usr/bin/env python3
"""What one call of a stage did, from the traces that `gpu_stages --traces FOLDER` writes: the time on the device, its kernels, where it stood still, and what
the host waited for.

    trace.py FOLDER_OR_FILE … [--top 14]"""
import argparse
import collections
import json
import re
from pathlib import Path

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
WAITING = ("Synchronize", "cudaMemcpy")  # of the runtime's calls, those that wait for the device, or may


def short(name: str) -> str:
    """A kernel's name without the templates that say the same of all: `at::native::elementwise_kernel<…silu…>` is `elementwise silu`."""
    name = re.sub(r"^void ", "", name)
    inner = re.search(r"::(\w+?)(?:_kernel)?(?:_cuda|_impl)?\(at::TensorIterator", name) or re.search(r"native::(\w*Functor\w*)", name)
    head = re.sub(r"<.*", "", name).replace("at::native::", "").replace("(anonymous namespace)::", "").split("(")[0]
    return (head + (" " + inner[1] if inner else ""))[:90]


def merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans in order, those that touch as one."""
    together: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if together and begin <= together[-1][1]:
            together[-1] = (together[-1][0], max(end, together[-1][1]))
        else:
            together.append((begin, end))
    return together


def summary(events: list[dict], top: int) -> list[str]:
    """Lines about one trace; its times are in microseconds."""
    timed = [e for e in events if e.get("ph") == "X" and "dur" in e]
    device = [e for e in timed if e.get("cat") in ON_DEVICE]
    host = [e for e in timed if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    ours = device + host + [e for e in timed if e.get("cat") == "cpu_op"]
    if not ours:
        return ["no events"]
    wall = max(e["ts"] + e["dur"] for e in ours) - min(e["ts"] for e in ours)
    spans = merged([(e["ts"], e["ts"] + e["dur"]) for e in device])
    busy = sum(end - begin for begin, end in spans)
    gaps = sorted((after[0] - before[1] for before, after in zip(spans, spans[1:])), reverse=True)
    lines = [f"{wall / 1e3:.2f} ms in all, {busy / 1e3:.2f} on the device in {len(device)} kernels and copies; it stood still {sum(gaps) / 1e3:.2f} ms between them, "
             f"longest {', '.join(f'{gap / 1e3:.2f}' for gap in gaps[:5])}"]
    for what, chosen, name in (("device", device, lambda e: short(e["name"])), ("host", host, lambda e: e["name"]),
                               ("operator", [e for e in timed if e.get("cat") == "cpu_op"], lambda e: e["name"])):
        sums, counts = collections.Counter(), collections.Counter()
        for event in chosen:
            sums[name(event)] += event["dur"]
            counts[name(event)] += 1
        few = top if what == "device" else top // 2
        lines += [f"  {what:8} {total / 1e3:9.3f} ms {counts[key]:5} x {key}" for key, total in sums.most_common(few)]
    waits = sum(e["dur"] for e in host if any(word in e["name"] for word in WAITING))
    return [*lines, f"  the host waited, or copied, {waits / 1e3:.2f} ms"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="+")
    parser.add_argument("--top", type=int, default=14)
    how = parser.parse_args()
    for file in (found for place in how.traces for found in (sorted(place.glob("*.json")) if place.is_dir() else [place])):
        print(f"== {file.stem.replace('_', ' ')}")
        print("\n".join(summary(json.loads(file.read_text(encoding="utf-8", errors="replace"))["traceEvents"], how.top)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
