#!/usr/bin/env python3
"""usage: tabulate.py FOLDER: merges all Google Benchmark *.json files there into results.json and prints them as a Markdown table."""
import json
import os
import platform
import sys
from pathlib import Path

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> int:
    folder = Path(sys.argv[1])
    runs = {f.stem: json.loads(f.read_text()) for f in sorted(folder.glob("*_bench.json"))}
    (folder / "results.json").write_text(json.dumps(runs, indent=1) + "\n")
    print(f"{cpu_name()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {platform.release()}\n")
    print("| program | benchmark | CPU | wall |\n|---|---|---|---|")
    for program, run in runs.items():
        for b in run["benchmarks"]:
            if b.get("run_type") == "aggregate" or "cpu_time" not in b:
                continue
            size = UNITS[b["time_unit"]]
            print(f"| {program} | {b['name']} | {readable(b['cpu_time'] * size)} | {readable(b['real_time'] * size)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
