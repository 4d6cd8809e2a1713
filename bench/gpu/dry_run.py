#!/usr/bin/env python3
"""dry_run.py BUILD: runs bench/gpu/run.sh --dry-run with the programs of BUILD and checks the rows and the table that it leaves. Before that, without
these programs: the judgements that decide whether a device computes rightly, runs that end early, and the table of a run that was cut off."""
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import measure
import table

STAGES = {"LLM step, own prompts", "LLM step, shared prompt", "LLM unit of 13 rows, own prompts", "TTS step", "hear a second", "window of sound"}


def dry_run(programs: Path, out: str, *flags: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", "bench/gpu/run.sh", "--dry-run", *flags], cwd=measure.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=os.environ | {"OUT": out, "PROGRAMS": str(programs), "PYTHON": sys.executable})


def check_runs_that_end_early() -> None:
    """Nothing is measured on a device that computes wrongly, and a run out of time says so."""
    with tempfile.TemporaryDirectory() as programs:
        fake = Path(programs) / "parley"
        for flags, help_text, parts in (((), "", ["machine", "parity"]), ((), "  --plain-attention", ["machine", *["parity"] * 3, "bfloat16"]),
                                        (("--seconds", "0"), "", ["machine", "end"])):
            fake.write_text(f"""#!/bin/sh
case "$*" in
*--help) echo '{help_text}' ;;
verify*) echo 'FAIL llm/prefill max_abs_err=1 tol=0.0001  (hidden)'; echo '49 passed, 1 failed'; exit 1 ;;
esac
""", encoding="utf-8")
            fake.chmod(0o755)
            (Path(programs) / "version").write_text("fake", encoding="utf-8")
            with tempfile.TemporaryDirectory() as out:
                done = dry_run(Path(programs), out, *flags)
                rows = table.read(Path(out) / "results.jsonl")
                assert done.returncode == 1 and [row["part"] for row in rows] == parts, (done, rows)
                text = (Path(out) / "table.md").read_text(encoding="utf-8")
                assert ("49 passed, 1 failed" if "parity" in parts else "out of time") in text and bool(help_text) == ("nano --plain-attention" in text), text


def check_run(programs: Path) -> None:
    with tempfile.TemporaryDirectory() as out:
        began = time.monotonic()
        done = dry_run(programs, out)
        assert done.returncode == 0, done.stdout + done.stderr
        rows, text = table.read(Path(out) / "results.jsonl"), (Path(out) / "table.md").read_text(encoding="utf-8")
        assert {file.name for file in Path(out).iterdir()} == {"results.jsonl", "table.md", "log.txt", "verify.log", "serve.log"}
    print(f"{time.monotonic() - began:.0f} s\n{text}")
    assert not [row for row in rows if row.get("error")], rows
    [machine] = table.of(rows, "machine")
    assert machine["dry_run"] and machine["version"] and machine["device"] == "cpu"
    exact = [row for row in table.of(rows, "parity") if row["dtype"] == "float32"]
    assert exact and all(row["passed"] == 50 and row["failed"] == 0 for row in exact)
    assert all(row["ratio"] == 1 for row in table.of(rows, "bfloat16")), "the CPU is compared with itself"
    assert [row["step"] for row in table.of(rows, "model")] == ["written", "checked"]
    timed = [row for row in table.of(rows, "stages") if "sessions" in row and row["variant"] == "as it is"]
    assert {(row["stage"], row["sessions"]) for row in timed} >= {(stage, n) for stage in STAGES for n in (1, 2)}, timed
    assert all(0 < row["p50_ms"] <= row["p95_ms"] and row["calls"] > 0 for row in timed)
    for variant in measure.ALTERNATIVES:
        assert {row["stage"] for row in table.of(rows, "stages") if row["variant"] == variant} >= {"LLM step, own prompts"}, variant
    sessions = table.of(rows, "sessions")
    assert [session["talk"] for session in sessions] == list(measure.TALK)
    assert all(session["sessions"] == 2 and session["load"]["units"]["answered"] > 0 and not session["load"]["errors"] for session in sessions)
    assert all(f"| {stage} | as it is | " in text for stage in STAGES) and "a dry run" in text and "| 2 | always | 2 | " in text


def check_judgements() -> None:
    here = measure.case_errors("ok llm/prefill max_abs_err=0.01 tol=0.0001\nFAIL image/one max_abs_err=0 tol=0.0001  (rows)\nok duplex_A/unit.1 max_abs_err=0 tol=0\n")
    assert here == {"llm/prefill": 0.01, "image/one": 0, "duplex_A/unit.1": 0}
    assert measure.counts("ok a/b max_abs_err=0 tol=0\n7 passed, 2 failed\n") == (7, 2) and measure.counts("no such device") == (0, 0)
    assert measure.bfloat16_ratio(here, here) == 1
    assert measure.bfloat16_ratio(here, here | {"duplex_A/unit.1": math.inf}) == 1, "what was drawn differs"
    assert math.isclose(measure.bfloat16_ratio(here, here | {"llm/prefill": 0.05}), 5)
    assert math.isclose(measure.bfloat16_ratio(here, here | {"image/one": measure.SMALL_ERROR}), 1), "an exact case may round"
    wrong = [here | {"llm/prefill": math.inf}, here | {"llm/prefill": math.nan}, {"llm/prefill": 0.01}, {}]
    assert all(not measure.bfloat16_ratio(here, there) <= measure.ROUNDING for there in wrong)
    assert measure.bfloat16_ratio({}, {}) == math.inf, "nothing to compare is no agreement"


def check_question_to_the_driver() -> None:
    """nvidia-smi is asked for the device that is measured, and one that fails says nothing."""
    with tempfile.TemporaryDirectory() as folder:
        fake = Path(folder) / "nvidia-smi"
        how = SimpleNamespace(out=folder, device="cuda:1", seconds=1, dry_run=False, libraries="", folder="none")
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = folder + os.pathsep + path
            for script, answer in (('echo "NVIDIA H200, 580.159.04, $*"', ["NVIDIA H200", "580.159.04"]), ("echo No devices were found; exit 6", [])):
                fake.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
                fake.chmod(0o755)
                told = measure.Measurement(how).query_gpu("name,driver_version")
                assert told[:2] == answer and (not told or "--query-gpu=name" in told[2] and told[-1].endswith("--id=1")), told
        finally:
            os.environ["PATH"] = path


def check_table_of_a_cut_run() -> None:
    rows = [
        {"part": "machine", "date": "2026-01-02 03:04 UTC", "version": "abc", "device": "cuda:0", "gpu": "NVIDIA H200", "driver": "580.1", "gpu_memory_mib": "143771",
         "cores": 16, "memory_gib": 125, "dry_run": False},
        {"part": "parity", "goldens": "nano", "device": "cuda:0", "dtype": "float32", "passed": 0, "failed": 0, "seconds": 1.2,
         "error": "status 1: no | device"},
        {"part": "stages", "variant": "as it is", "stage": "TTS step", "sessions": 64, "p50_ms": 1234.5, "p95_ms": 12.34, "calls": 5, "memory_mib": 2048},
        {"part": "stages", "variant": "as it is", "stage": "TTS step", "sessions": 128, "error": "out of memory"},
        {"part": "serve", "slots": 128, "seconds": 20.0, "error": "128 sessions need more memory than is free"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)) + '\n{"part": "sess', encoding="utf-8")
        read = table.read(file)
        shown = subprocess.run([sys.executable, "bench/gpu/table.py", str(file)], cwd=measure.ROOT, capture_output=True, text=True, check=True).stdout
    assert read == rows and shown == table.render(rows)
    for part in ("NVIDIA H200, 143771 MiB, driver 580.1", "| status 1: no / device |", "| TTS step | as it is | 1,234 / 12.3 (2.0 GiB) | failed |",
                 "128 sessions need more memory"):
        assert part in shown, shown


if __name__ == "__main__":
    check_judgements()
    check_question_to_the_driver()
    check_table_of_a_cut_run()
    check_runs_that_end_early()
    check_run(Path(sys.argv[1]).resolve())
