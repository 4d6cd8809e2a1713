#!/usr/bin/env python3
"""dry_run.py BUILD: runs bench/gpu/first.sh and second.sh with DRY=1 and the programs of BUILD and checks the rows and the table that they leave. Before
that, without these programs: the plan, what travels, the judgements that decide whether a device computes rightly, what ends a run and what does not, and the
table of a run that was cut off."""
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
import plan
import table
import travel

STAGES = {"LLM step, own prompts", "LLM step, shared prompt", "LLM unit of 13 rows, own prompts", "LLM unit among tokens, own prompts", "TTS step", "TTS pass of four steps",
          "hear a second", "window of sound"}


def script(name: str, *flags: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", f"bench/gpu/{name}", *flags], cwd=measure.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=os.environ | {"PYTHON": sys.executable} | environment)


def fake(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text("#!/bin/sh\n" + text, encoding="utf-8")
    (folder / name).chmod(0o755)


def fake_programs(folder: Path, wrong: str, more_flags: str = "") -> None:
    """Programs by which the goldens `wrong` fail, and that do nothing else."""
    fake(folder, "parley", f"""for last; do :; done
case "$*" in
*--help) echo '{more_flags}' ;;
verify*goldens/{wrong}*) echo 'FAIL llm/prefill max_abs_err=1 tol=0.0001  (hidden)'; echo '49 passed, 1 failed'; exit 1 ;;
verify*) echo 'ok llm/prefill max_abs_err=0 tol=0.0001'; echo '50 passed, 0 failed' ;;
init-model*) mkdir -p "$last" ;;
esac
""")
    fake(folder, "gpu_stages", """echo '{"stage": "TTS step", "sessions": 1, "p50_ms": 1, "p95_ms": 1, "calls": 5}'""")
    (folder / "version").write_text("fake", encoding="utf-8")


def check_plan() -> None:
    assert plan.total() == plan.START + sum(plan.LIMITS.values()) <= plan.BUDGET
    assert all(plan.seconds_of(call) <= 600 for call in plan.CALLS), "one command may run so long"
    assert {step.part for steps in plan.CALLS.values() for step in steps} - {"unpack"} == set(measure.PARTS) - {"variants"}
    assert (plan.slots(81559), plan.slots(143771)) == (73, 147)
    assert plan.conversations(81559) == [1, 16, 20, 32, 64] and plan.conversations(143771) == list(plan.CONVERSATIONS) and plan.conversations(24000) == [1]
    loads = len(plan.conversations(143771)) * (plan.LOAD_SECONDS + plan.LOAD_RAMP + plan.LOAD_END)
    assert loads <= plan.LIMITS["sessions"] - 60, "a minute is for loading the model"
    with tempfile.TemporaryDirectory() as folder:
        fake(Path(folder), "nvidia-smi", "echo 143771")
        printed = script("run.sh", "--dry", PATH=folder + os.pathsep + os.environ["PATH"]).stdout
    for said in (*(f"{step.seconds:4} s  {step.part}: " for steps in plan.CALLS.values() for step in steps), f"{plan.total():4} s  of 900", "147 sessions",
                 *(f"{plan.seconds_of(call):4} s  bash bench/gpu/{call}.sh" for call in plan.CALLS)):
        assert said in printed, printed


def check_travel() -> None:
    """What travels is measured as it travels, and folders come back as they were."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        (root / ".gitignore").write_text("/build/\n", encoding="utf-8")
        large = root / travel.UNREAD[0] / "weights"
        for file, size in ((large, 40 << 20), (root / "tracked", 513), (root / "untracked", 15 << 20), (root / "build/gpu/programs", 10 << 20),
                           (root / "build/release/parley", 90 << 20)):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as made:
                made.truncate(size)
        (root / "link").symlink_to(large)
        os.utime(large, (1, 1))
        subprocess.run(["git", "-C", folder, "add", "tracked", travel.UNREAD[0]], check=True)
        assert math.isclose(travel.mebibytes(travel.travelling(root)) * 2**20, (65 << 20) + 1024 + 512 + 512 * 6), "two blocks each of 513 and 7 bytes"
        run = lambda *what: subprocess.run([sys.executable, "bench/gpu/travel.py", "--root", folder, *what], cwd=measure.ROOT, capture_output=True, text=True)
        assert run().returncode == 1 and travel.UNREAD[0] in run().stderr
        assert run("aside").returncode == 0 and not large.exists() and run().returncode == 0
        assert run("back").returncode == 0 and large.stat().st_mtime == 1 and not (root / travel.ASIDE).exists()
    # This checkout, with room for a pack of the programs: without the folders that are moved aside it travels, and nothing that is read there lies in them.
    unread = [travel.ROOT / name for name in travel.UNREAD]
    staying = [file for file in travel.travelling(travel.ROOT) if not any(file.is_relative_to(folder) or file.is_relative_to(travel.ROOT / "build") for folder in unread)]
    assert travel.mebibytes(staying) + 8 <= plan.TRAVEL_MIB, travel.mebibytes(staying)
    assert not [file for file in staying if file.is_symlink() and any(file.resolve().is_relative_to(folder) for folder in unread)]
    read = [*measure.GOLDENS.values(), *(f"tests/data/goldens/{name}" for name in measure.GOLDENS), measure.QUESTION, measure.TOKENIZER]
    assert not [name for name in read if any((travel.ROOT / name).is_relative_to(folder) for folder in unread)]


def check_what_ends_a_run() -> None:
    """A device that computes nano wrongly is measured up to its stages; a run out of time says so."""
    with tempfile.TemporaryDirectory() as programs:
        began = ["machine", "probe", "parity"]
        for flags, more_flags, parts in (((), "", [*began, "model", "model", "stages", "stages"]), ((), "  --plain-attention", [*began, "parity", "model", "model", "stages", "stages"]),
                                         (("--seconds", "0"), "", ["machine", "end"])):
            fake_programs(Path(programs), "nano", more_flags)
            with tempfile.TemporaryDirectory() as out:
                done = script("run.sh", *flags, DRY="1", OUT=out, PROGRAMS=programs)
                rows = table.read(Path(out) / "results.jsonl")
                assert done.returncode == 1 and [row["part"] for row in rows] == parts, (done, rows)
                text = (Path(out) / "table.md").read_text(encoding="utf-8")
                assert ("49 passed, 1 failed" if "parity" in parts else "out of time") in text and bool(more_flags) == ("nano --plain-attention" in text), text


def check_what_does_not_end_it() -> None:
    """Other goldens may fail, and a server may not start: all parts have their rows. The card's memory says how many conversations are measured."""
    with tempfile.TemporaryDirectory() as folder:
        programs, out, model = (Path(folder) / name for name in ("programs", "out", "model"))
        for place in (programs, out, model):
            place.mkdir()
        fake_programs(programs, "e2e")
        fake(programs, "nvidia-smi", """case "$*" in *gpu=memory.total*) echo 81559 ;; *) echo "NVIDIA H100, 580.1, 81559" ;; esac""")
        done = subprocess.run([sys.executable, "bench/gpu/measure.py", "--programs", str(programs), "--out", str(out), "--folder", str(model), "--parts",
                               "nano,stages,sessions,parity"], cwd=measure.ROOT, capture_output=True, text=True,
                              env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"})
        rows = table.read(out / "results.jsonl")
        assert not list(model.iterdir()), "a folder that was given stays as it is"
    assert done.returncode == 0, done
    assert [row["slots"] for row in table.of(rows, "serve")] == [64, 32, 20, 16, 1] * 2
    wrong = [(row["goldens"], row["device"]) for row in table.of(rows, "parity") if row["failed"]]
    assert wrong == [("e2e", "cuda:0"), ("e2e", "cpu")] and len(table.of(rows, "bfloat16")) == 2 and table.of(rows, "stages"), rows


def check_run(programs: Path) -> None:
    with tempfile.TemporaryDirectory() as out:
        began = time.monotonic()
        for done in (script(name, *flags, DRY="1", OUT=out, PROGRAMS=str(programs)) for name, *flags in
                     (("first.sh",), ("second.sh",), ("run.sh", "--parts", "variants"))):
            assert done.returncode == 0, done.stdout + done.stderr
        rows, text = table.read(Path(out) / "results.jsonl"), (Path(out) / "table.md").read_text(encoding="utf-8")
        assert {file.name for file in Path(out).iterdir()} == {"results.jsonl", "probe.jsonl", "table.md", "log.txt", "verify.log", "serve.log"}, "at most 8 come back"
    print(f"{time.monotonic() - began:.0f} s\n{text}")
    assert not [row for row in rows if row.get("error")], rows
    assert all(machine["dry_run"] and machine["version"] and machine["device"] == "cpu" for machine in table.of(rows, "machine"))
    [probe] = table.of(rows, "probe")
    assert probe["passed"] >= 12 and not probe["failed"], probe
    [exact] = [row for row in table.of(rows, "parity") if row["dtype"] == "float32"]
    assert exact["passed"] == 50 and exact["failed"] == 0
    assert [row["ratio"] for row in table.of(rows, "bfloat16")] == [1], "the CPU is compared with itself"
    assert [row["step"] for row in table.of(rows, "model")] == ["written", "checked"] * 3
    timed = [row for row in table.of(rows, "stages") if "sessions" in row and row["variant"] == "as it is"]
    assert {(row["stage"], row["sessions"]) for row in timed} >= {(stage, n) for stage in STAGES for n in (1, 2)}, timed
    assert all(0 < row["p50_ms"] <= row["p95_ms"] and row["calls"] > 0 for row in timed)
    for variant in measure.ALTERNATIVES:
        assert {row["stage"] for row in table.of(rows, "stages") if row["variant"] == variant} >= {"LLM step, own prompts"}, variant
    sessions = table.of(rows, "sessions")
    assert [(session["speech"], session["talk"]) for session in sessions] == [(speech, talk) for speech in measure.SPEECH for talk in measure.TALK]
    assert all(session["sessions"] == 2 and session["load"]["units"]["answered"] > 0 and not session["load"]["errors"] for session in sessions)
    assert all(f"| {stage} | as it is | " in text for stage in STAGES) and "a dry run" in text and "| 2 | always | mixed | 2 | " in text and " token2wav " in text
    assert text.count("a dry run: its figures mean nothing") == 3


def check_judgements() -> None:
    here = measure.case_errors("ok llm/prefill max_abs_err=0.01 tol=0.0001\nFAIL image/one max_abs_err=0 tol=0.0001  (rows)\nok duplex_A/unit.1 max_abs_err=0 tol=0\n")
    assert here == {"llm/prefill": 0.01, "image/one": 0, "duplex_A/unit.1": 0}
    assert measure.probe_answers("INFO end: x\nPASS flash, one: 1\nFAIL flash, two: RuntimeError: no\nFAIL llm: lost\n") == (1, ["flash, two", "llm"])
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
        how = SimpleNamespace(out=folder, device="cuda:1", seconds=1, dry_run=False, libraries="", folder="none", parts=["nano"])
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
        {"part": "probe", "passed": 30, "failed": ["flash far, 4 queries"], "seconds": 70.0, "error": None},
        {"part": "sessions", "sessions": 64, "talk": "usual", "memory_mib": 70000.0, "utilization": 91, "load": {
            "sessions": {"at_once": 64}, "units": {"answered": 705, "spoken": 208, "unanswered": 3}, "deadline_misses": 11,
            "sound": {"seconds": 200.0, "gaps": 9, "gap_seconds": 5.0},
            "milliseconds": {"unit_latency": {"p50": 137.0, "p95": 946.0, "p99": 1011.0}, "first_sound": {"p50": 753.0, "p95": 1006.0}, "sent_late": {"p99": 2.5}}}},
        {"part": "serve", "slots": 128, "seconds": 20.0, "error": "128 sessions need more memory than is free"},
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)) + '\n{"part": "sess', encoding="utf-8")
        read = table.read(file)
        shown = subprocess.run([sys.executable, "bench/gpu/table.py", str(file)], cwd=measure.ROOT, capture_output=True, text=True, check=True).stdout
    assert read == rows and shown == table.render(rows)
    for part in ("NVIDIA H200, 143771 MiB, driver 580.1", "| status 1: no / device |", "| TTS step | as it is | 1,234 / 12.3 (2.0 GiB) | failed |",
                 "The probe: 30 passed, 1 failed: flash far, 4 queries.",
                 "| 64 | usual | float32 | 64 | 705 / 208 | 11 (1.6 %) | 137 / 946 / 1,011 | 753 / 1,006 | 2.5 % in 9 | 2.50 | 70,000 | 91 |",
                 "128 sessions need more memory"):
        assert part in shown, shown


if __name__ == "__main__":
    check_plan()
    check_travel()
    check_judgements()
    check_question_to_the_driver()
    check_table_of_a_cut_run()
    check_what_ends_a_run()
    check_what_does_not_end_it()
    check_run(Path(sys.argv[1]).resolve())
