#!/usr/bin/env python3
"""smoke.py BUILD: checks that everything here still runs: each quick benchmark briefly, programs with their own arguments on little input,
scripts up to their usage text. Fails on crashes and errors, not on figures."""
import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Skipped: the sizes of the real model, and larger runs of the same benchmark.
SLOW = r"/real/|/(mid|1024|1000)(/|$)|sessions:(2|4|8|16|32|64)/"
OWN_COMMANDS = {
    "engine_life_bench": ["churn", "4", "2"],
    "quant_bench": [],
    "stage_bench": ["models/tiny-omni", "tests/data/question.wav", "2"],
}


def run(command: list) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | {"OMP_NUM_THREADS": "1"})


def program(path: Path) -> str:
    """What is wrong with a program; empty if it runs."""
    if path.name in OWN_COMMANDS:
        done = run([path, *OWN_COMMANDS[path.name]])
        return "" if done.returncode == 0 else f"status {done.returncode}\n{done.stderr}"
    with tempfile.NamedTemporaryFile(suffix=".json") as out:  # on standard output the engine's log is in between
        done = run([path, "--benchmark_min_time=0.001", f"--benchmark_filter=-{SLOW}", f"--benchmark_out={out.name}", "--benchmark_out_format=json"])
        if done.returncode:
            return f"status {done.returncode}\n{done.stderr}"
        rows = json.load(out)["benchmarks"]
    wrong = [f"{row['name']}: {row['error_message']}" for row in rows if row.get("error_occurred")]
    return "\n".join(wrong) if rows else "no benchmark ran"


def script(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return run(["bash", "-n", path]).stderr
    ast.parse(text)
    if "argparse" not in text:
        return ""
    done = run([sys.executable, path, "--help"])
    return "" if done.returncode == 0 and "usage:" in done.stdout else f"status {done.returncode}\n{done.stderr}"


def main() -> int:
    bench = ROOT / "bench"
    programs = sorted(Path(sys.argv[1]).resolve().glob("*_bench"))
    scripts = sorted(f for f in bench.rglob("*") if f != Path(__file__).resolve() and (f.suffix in (".py", ".sh") or f.name == "run"))
    failed = 0
    for path, look in [*((p, program) for p in programs), *((s, script) for s in scripts)]:
        began = time.monotonic()
        wrong = look(path)
        failed += bool(wrong)
        print(f"{path.name:24} {time.monotonic() - began:6.2f} s  {wrong or 'ok'}", flush=True)
    if {p.name for p in programs} != {p.stem for p in bench.glob("*_bench.cpp")}:
        print("a program of this folder was not built")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
