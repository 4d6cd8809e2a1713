#!/usr/bin/env python3
"""Checks and measures Parley on a machine with a GPU: the part of bench/gpu/run.sh that needs more than a shell.

Parts, in the order of their worth: probe (questions to the card, without our programs), nano (the goldens of models/nano on the device, in float32), model
(a folder of the published size, written beside what comes before, and checked), stages (milliseconds of each stage by number of sessions), sessions
(conversations in real time against `parley serve`), parity (the other goldens, and bfloat16), variants (stages with other kinds of attention). A device
that fails nano is measured up to its stages, no further; nothing else that fails ends the run. Each part has its limit (plan.py), and each step writes its
rows at once to OUT/results.jsonl and OUT/table.md, so that a run that is cut off leaves what it has measured. Standard library only."""
import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import plan
import table

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("probe", "nano", "model", "stages", "sessions", "parity", "variants")
ON_THE_MODEL = {"model", "stages", "sessions", "variants"}
VARIANTS_LIMIT = 90  # seconds; the plan has none
GOLDENS = {"nano": "models/nano", "thinker": "tests/data/checkpoints/tiny", "e2e": "models/tiny-omni"}
QUESTION = "tests/data/question.wav"
TOKENIZER = "tests/data/goldens/thinker/tokenizer_full"
FULL_SIZE_BYTES = 22e9
MODEL_FOLDER = "parley-full-size"  # bench/gpu/kernels.sh looks for it, too
COMPLETE = ".complete"  # in a folder that was written and checked
# Parts of the model that compute the same whatever was drawn before: only there errors in bfloat16 can be compared.
COMPARABLE = ("llm/", "audio_encoder/", "image/")
# A device rounds differently from the CPU: its error in bfloat16 may be this many times as large, or as this smallest error.
ROUNDING = 4.0
SMALL_ERROR = 2e-3
# A model with random weights never decides to listen or to stop: it speaks all the time, 20 tokens a second, which no person does. The usual
# talk has the pace of people's speech, and three of five seconds are told to listen.
TALK = {"usual": ["--listening", "0.6", "--speak-tokens", "6"], "always": []}
# How the networks that speak compute: engine.speech_dtype.
SPEECH = ("float32", "mixed")
# Other ways to compute, by flags; one that a program does not know is left out.
PLAIN = "--plain-attention"
ALTERNATIVES = {"plain attention": PLAIN, "cuDNN attention": "--cudnn-attention", "kernel by kernel": "--no-graphs"}


class Deadline(Exception):
    pass


def case_errors(text: str) -> dict[str, float]:
    """What `parley verify` prints: the error of each case."""
    return {name: float(error) for name, error in re.findall(r"^(?:ok|FAIL) (\S+) max_abs_err=(\S+)", text, re.M)}


def counts(text: str) -> tuple[int, int]:
    """Passed and failed cases, by the last line of `parley verify`; (0, 0) without one."""
    found = re.findall(r"^(\d+) passed, (\d+) failed$", text, re.M)
    return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)


def bfloat16_ratio(here: dict[str, float], there: dict[str, float]) -> float:
    """The largest factor by which an error of `there` exceeds that of `here`, over the cases that can be compared; infinite without any."""
    names = [name for name in here if name.startswith(COMPARABLE)]
    ratios = [there.get(name, math.inf) / max(here[name], SMALL_ERROR) for name in names]
    return math.inf if not ratios or any(math.isnan(ratio) for ratio in ratios) else max(ratios)


def probe_answers(text: str) -> tuple[int, list[str]]:
    """How many of the probe's questions passed, and what failed."""
    return len(re.findall(r"^PASS ", text, re.M)), re.findall(r"^FAIL ([^:\n]*)", text, re.M)


def last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def meminfo(name: str) -> int:
    """Bytes."""
    return 1024 * int(re.search(rf"^{name}:\s+(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"), re.M)[1])


class Measurement:
    def __init__(self, how: argparse.Namespace):
        self.how = how
        self.out = Path(how.out).resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.rows = (self.out / "results.jsonl").open("a", encoding="utf-8")
        self.log = (self.out / "log.txt").open("a", encoding="utf-8")
        wanted = set(how.parts) | ({"model"} if ON_THE_MODEL & set(how.parts) else set())
        self.parts = [part for part in PARTS if part in wanted]
        self.end = self.part_end = time.monotonic() + how.seconds
        self.environment = os.environ | ({"OMP_NUM_THREADS": "1"} if how.dry_run else {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
        if how.libraries:
            self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, (how.libraries, os.environ.get("LD_LIBRARY_PATH"))))
        self.folder = Path(how.folder) if how.folder else self.out / "model" if how.dry_run else self.room() / MODEL_FOLDER
        self.maker = None

    # --- Running programs ---------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        line = f"{time.strftime('%H:%M:%S')} {text}"
        print(line, flush=True)
        print(line, file=self.log, flush=True)

    def row(self, part: str, **values) -> None:
        print(json.dumps({"part": part, **values}), file=self.rows, flush=True)
        (self.out / "table.md").write_text(table.render(table.read(self.out / "results.jsonl")), encoding="utf-8")

    def limit(self, seconds: float) -> float:
        """The step's own limit, or what is left of its part's time."""
        left = self.part_end - time.monotonic()
        if left < 1:
            raise Deadline
        return min(seconds, left)

    def program(self, name: str) -> str:
        return str(Path(self.how.programs).resolve() / name)

    def run(self, command: list[str], limit: float, environment: dict[str, str] | None = None) -> tuple[int, str, float]:
        """Exit status (124: it ran too long), standard output and seconds. Standard error goes to the log."""
        limit, began = self.limit(limit), time.monotonic()
        self.say(" ".join([Path(command[0]).name, *command[1:]]))
        try:
            done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True, timeout=limit,
                                  env=environment or self.environment)
            return done.returncode, done.stdout, time.monotonic() - began
        except subprocess.TimeoutExpired as e:
            self.say(f"stopped after {limit:.0f} s")
            return 124, (e.stdout or b"").decode() if isinstance(e.stdout, bytes) else e.stdout or "", time.monotonic() - began

    def room(self) -> Path:
        """Where a model of the published size fits; in memory if there is room for it twice, as the programs need some, too."""
        memory, disk = Path("/dev/shm"), Path(os.environ.get("TMPDIR", "/tmp"))
        for place in (memory, disk, ROOT / "build"):
            if (place / MODEL_FOLDER / COMPLETE).exists():
                return place  # an earlier call has written it
        places = [memory] if meminfo("MemAvailable") > 2 * FULL_SIZE_BYTES else []
        for place in (*places, disk, ROOT / "build"):
            if place.is_dir() and shutil.disk_usage(place).free > FULL_SIZE_BYTES:
                return place
        return disk

    # --- What machine this is ---------------------------------------------------------------------------------------------

    def query_gpu(self, fields: str) -> list[str]:
        """One value per field of the device; empty without nvidia-smi."""
        if not shutil.which("nvidia-smi") or self.how.device == "cpu":
            return []
        number = self.how.device.partition(":")[2] or "0"
        done = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits", f"--id={number}"], capture_output=True, text=True,
                              timeout=20)
        return [value.strip() for value in done.stdout.split(",")] if done.returncode == 0 else []

    def machine(self) -> None:
        gpu = self.query_gpu("name,driver_version,memory.total")
        packed = Path(self.how.programs) / "version"
        version = packed.read_text(encoding="utf-8").strip() if packed.is_file() else self.run([self.program("parley"), "--version"], 20)[1].strip()
        self.row("machine", date=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), version=version, device=self.how.device, gpu=gpu[0] if gpu else None,
                 driver=gpu[1] if gpu else None, gpu_memory_mib=gpu[2] if gpu else None, cores=os.cpu_count(), memory_gib=round(meminfo("MemTotal") / 2**30),
                 dry_run=self.how.dry_run)

    # --- Questions to the card, and parity ---------------------------------------------------------------------------------

    def probe(self) -> None:
        """It writes each answer to OUT/probe.jsonl itself."""
        seconds = 30 if self.how.dry_run else plan.LIMITS["probe"] - 15
        command = [sys.executable, str(ROOT / "bench/gpu/probe.py"), "--seconds", str(seconds), "--programs", self.how.programs]
        status, text, seconds = self.run(command, seconds + 10, os.environ | {"OUT": str(self.out), "OMP_NUM_THREADS": "1"} if self.how.dry_run else
                                         os.environ | {"OUT": str(self.out)})
        print(text, file=self.log, flush=True)
        passed, failed = probe_answers(text)
        self.row("probe", passed=passed, failed=failed, seconds=round(seconds, 1), error=None if status == 0 else f"status {status}: {last_line(text)}")

    def knows(self, flag: str, *command: str) -> bool:
        return flag in self.run([self.program(command[0]), *command[1:], "--help"], 20)[1]

    def verify(self, goldens: str, device: str, dtype: str, *flags: str, limit: float = 60) -> tuple[bool, dict[str, float]]:
        """Whether all cases passed, and the error of each."""
        status, text, seconds = self.run([self.program("parley"), "verify", "--model", GOLDENS[goldens], "--goldens", f"tests/data/goldens/{goldens}",
                                          "--device", device, "--dtype", dtype, *flags], limit)
        passed, failed = counts(text)
        with (self.out / "verify.log").open("a", encoding="utf-8") as log:
            log.write(" ".join(("==", goldens, device, dtype, *flags)) + "\n" + "".join(line + "\n" for line in text.splitlines() if not line.startswith("ok ")))
        self.row("parity", goldens=" ".join((goldens, *flags)), device=device, dtype=dtype, passed=passed, failed=failed, seconds=round(seconds, 1),
                 error=None if passed + failed else f"status {status}: {last_line(text)}")
        return passed > 0 and failed == 0, case_errors(text)

    def nano(self) -> bool:
        """Whether the device gives nano's goldens in float32. If not, whether attention is to blame is asked, too."""
        each = plan.LIMITS["nano"] / 2
        right = self.verify("nano", self.how.device, "float32", limit=each)[0]
        if not right and self.knows(PLAIN, "parley", "verify"):
            self.verify("nano", self.how.device, "float32", PLAIN, limit=each)
        self.say(f"{self.how.device} computes {'as it should' if right else 'WRONGLY'}")
        return right

    def parity(self) -> None:
        """The other goldens in float32, with the CPU's answer where the device's is wrong; then whether it rounds bfloat16 about as the CPU does."""
        device = self.how.device
        for goldens in () if self.how.dry_run else ("e2e", "thinker"):
            if not self.verify(goldens, device, "float32")[0] and device != "cpu":
                self.verify(goldens, "cpu", "float32")
        for goldens in ("nano",) if self.how.dry_run else ("nano", "thinker"):
            there = self.verify(goldens, device, "bfloat16")[1]
            ratio = bfloat16_ratio(there if device == "cpu" else self.verify(goldens, "cpu", "bfloat16")[1], there)
            self.row("bfloat16", goldens=goldens, device=device, ratio=ratio if math.isfinite(ratio) else None, allowed=ROUNDING)

    # --- A model of the published size --------------------------------------------------------------------------------------

    def begin_model(self) -> None:
        """It is written beside the parts before it."""
        if (self.folder / COMPLETE).exists() or self.how.folder:
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        preset = "tiny" if self.how.dry_run else "minicpm-o-4.5"
        words = ["--tokenizer", TOKENIZER] if not self.how.dry_run else []
        self.say(f"writing a {preset} model to {self.folder}")
        self.maker = (subprocess.Popen([self.program("parley"), "init-model", "--preset", preset, "--seed", "1", *words, "--out", str(self.folder)], cwd=ROOT,
                                       stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment), time.monotonic())

    def finish_model(self) -> bool:
        if self.maker:
            process, began = self.maker
            try:
                process.wait(self.limit(120))
            except subprocess.TimeoutExpired:
                process.kill()
            size = sum(file.stat().st_size for file in self.folder.rglob("*") if file.is_file())
            self.row("model", step="written", seconds=round(time.monotonic() - began, 1), gigabytes=round(size / 1e9, 2), error=None if process.wait() == 0 else "failed")
            self.maker = None
            if process.returncode != 0:
                return False
        if (self.folder / COMPLETE).exists():
            return True
        status, text, seconds = self.run([self.program("parley"), "check-model", str(self.folder)], 60)
        self.row("model", step="checked", seconds=round(seconds, 1), error=None if status == 0 else last_line(text))
        if status == 0 and not self.how.folder:
            (self.folder / COMPLETE).touch()
        return status == 0

    # --- Stages ---------------------------------------------------------------------------------------------------------------

    def stages(self, variant: str, limit: float, *flags: str) -> None:
        """Rows of gpu_stages, each written as it comes."""
        command = [self.program("gpu_stages"), "--model", str(self.folder), "--device", self.how.device, *flags]
        self.say(" ".join(["gpu_stages", *command[1:]]))
        began, limit = time.monotonic(), self.limit(limit)
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                   env=self.environment)
        guard = threading.Timer(limit, process.kill)
        guard.start()
        for line in process.stdout:
            if line.startswith("{"):
                self.row("stages", variant=variant, **json.loads(line))
        guard.cancel()
        if process.wait() != 0:
            self.row("stages", variant=variant, stage="the run", error="stopped at its limit" if time.monotonic() - began >= limit else f"status {process.returncode}")

    def stages_of_speech(self) -> None:
        """As it is; then, for another format of the networks that speak, what changes with it."""
        counts = ["--sessions", ",".join(map(str, self.how.stage_sessions)), *self.history()]
        for speech in self.how.speech:
            changed = [] if speech == self.how.speech[0] else ["--stages", "tts,window"]
            with tempfile.TemporaryDirectory() as folder:
                self.stages("as it is" if speech == SPEECH[0] else f"{speech} speech", 240, *counts, "--speech", speech, *changed,
                            *(["--traces", folder] if self.how.traces else []))
                if self.how.traces:
                    text = self.run([sys.executable, str(ROOT / "bench/gpu/trace.py"), folder], 60)[1]
                    with (self.out / "traces.txt").open("a", encoding="utf-8") as file:
                        file.write(f"# {speech}\n{text}")

    # --- Sessions ---------------------------------------------------------------------------------------------------------------

    def serve(self, sessions: int, speech: str) -> tuple[subprocess.Popen | None, str, float]:
        """A server with so many slots: its process and address. None, and why it did not start."""
        began = time.monotonic()
        with (self.out / "serve.log").open("a", encoding="utf-8") as log:
            start = log.tell()
            command = [self.program("parley"), "serve", "--model", str(self.folder), "--device", self.how.device, "--port", "0",
                       "--set", f"worker.max_sessions={sessions}", "--set", f"engine.context_tokens={self.how.context}",
                       "--set", f"engine.speech_dtype={speech}"]
            self.say(" ".join(["parley", *command[1:]]))
            process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment)
        guard = threading.Timer(self.limit(120), process.kill)
        guard.start()
        line = process.stdout.readline().strip()
        guard.cancel()
        if line.startswith("ready "):
            return process, line.split()[1], time.monotonic() - began
        process.kill()
        process.wait()
        with (self.out / "serve.log").open(encoding="utf-8") as log:
            log.seek(start)
            return None, last_line(log.read()), time.monotonic() - began

    def stop(self, process: subprocess.Popen) -> None:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stage_times(self, url: str) -> dict[str, tuple[float, float]]:
        """Calls of each stage and their seconds since the server began, by its own meter."""
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found = re.findall(r'^parley_stage_seconds_(count|sum)\{[^}]*stage="([^"]+)"[^}]*\} (\S+)$', text, re.M)
        values = {(kind, stage): float(value) for kind, stage, value in found}
        return {stage: (count, values.get(("sum", stage), 0)) for (kind, stage), count in values.items() if kind == "count"}

    def load(self, url: str, sessions: int, talk: str, speech: str) -> None:
        before = self.stage_times(url)
        figures = self.out / "load.json"
        seen, over = [], threading.Event()

        def watch() -> None:
            while not over.wait(1):
                if now := self.query_gpu("memory.used,utilization.gpu"):
                    seen.append([float(value) for value in now])

        watcher = threading.Thread(target=watch)
        watcher.start()
        status, text, _ = self.run([self.program("parley"), "load", "--url", url, "--mode", "audio", "--sessions", str(sessions), "--seconds",
                                    str(self.how.load_seconds), "--ramp", str(plan.LOAD_RAMP), "--playback-lead", str(table.PLAYBACK_LEAD), "--wav", QUESTION,
                                    *TALK[talk], "--json", str(figures)], self.how.load_seconds + 45)
        over.set()
        watcher.join()
        after = self.stage_times(url) if status == 0 else {}
        calls = {stage: [int(count - before.get(stage, (0, 0))[0]), round(seconds - before.get(stage, (0, 0))[1], 3)] for stage, (count, seconds) in after.items()}
        values = {"speech": speech, "calls": calls, "memory_mib": max((s[0] for s in seen), default=None), "utilization": round(sum(s[1] for s in seen) / len(seen)) if seen else None}
        if status != 0 or not figures.is_file():
            self.row("sessions", sessions=sessions, talk=talk, error=f"status {status}: {last_line(text)}", **values)
            return
        self.row("sessions", sessions=sessions, talk=talk, load=json.loads(figures.read_text(encoding="utf-8")), **values)
        figures.unlink()

    def conversations(self) -> list[int]:
        """As asked for, else what the card's memory has slots for."""
        if self.how.sessions:
            return sorted(self.how.sessions)
        memory = self.query_gpu("memory.total")
        return plan.conversations(float(memory[0])) if memory else [1]

    def sessions(self) -> None:
        for speech in self.how.speech:
            self.sessions_of(speech)

    def sessions_of(self, speech: str) -> None:
        """One server with slots for the most sessions that it takes; then loads that grow, people of the usual talk first."""
        wanted = self.conversations()
        while wanted:
            process, answer, seconds = self.serve(wanted[-1], speech)
            self.row("serve", speech=speech, slots=wanted[-1], seconds=round(seconds, 1), error=None if process else answer)
            if process:
                break
            wanted.pop()
        else:
            return
        try:
            for talk in self.how.talk:
                for count in wanted:
                    if process.poll() is not None:
                        self.row("serve", slots=count, error=f"the server ended with status {process.returncode}")
                        return
                    if self.part_end - time.monotonic() < self.how.load_seconds + plan.LOAD_RAMP + plan.LOAD_END:
                        raise Deadline
                    self.load(answer, count, talk, speech)
        finally:
            self.stop(process)

    def variants(self) -> None:
        few = ",".join(str(n) for n in self.how.stage_sessions if n in (1, 2, 64))
        for name, flag in ALTERNATIVES.items():
            if self.knows(flag, "gpu_stages"):
                self.stages(name, 90, "--sessions", few, "--stages", "llm", flag, *self.history())

    def history(self) -> list[str]:
        return ["--past", "128", "--prompt", "64", "--seconds", "0.1"] if self.how.dry_run else ["--past", str(self.how.past), "--seconds", "0.5"]

    # --- All --------------------------------------------------------------------------------------------------------------------

    def part(self, name: str) -> bool:
        """Within its limit; the last part has all the time that is left. False if it failed or was cut off."""
        steps = {"probe": self.probe, "nano": self.nano, "model": self.finish_model, "sessions": self.sessions, "parity": self.parity, "variants": self.variants,
                 "stages": self.stages_of_speech}
        last = name == self.parts[-1]
        self.part_end = self.end if last else min(self.end, time.monotonic() + plan.LIMITS.get(name, VARIANTS_LIMIT))
        try:
            return steps[name]() is not False
        except Deadline:
            if self.part_end == self.end:
                raise
            self.row("end", error=f"{name}: out of time")
            self.say(f"{name} is out of time")
            return False

    def measure(self) -> int:
        self.machine()
        if ON_THE_MODEL & set(self.how.parts):
            self.begin_model()
        right = modelled = True
        for name in self.parts:
            if not right and name not in ("model", "stages"):
                self.say("a device that computes wrongly is measured no further")
                break
            if name in ON_THE_MODEL and not modelled:
                continue
            good = self.part(name)
            right = good if name == "nano" else right
            modelled = good if name == "model" else modelled
        return 0 if right and modelled else 1


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def parts(text: str) -> list[str]:
    """In the order of their worth."""
    wanted = set(text.split(","))
    if unknown := wanted - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
    return [part for part in PARTS if part in wanted]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", required=True, help="folder of parley and gpu_stages")
    parser.add_argument("--libraries", default="", help="folders of their libraries, separated by colons")
    parser.add_argument("--out", required=True, help="folder for the results")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--folder", help="model folder to measure; default: one of the published size with random weights, written first")
    parser.add_argument("--parts", type=parts, default=list(PARTS), help=",".join(PARTS))
    parser.add_argument("--seconds", type=float, help="time for everything; default: the sum of the parts' limits")
    parser.add_argument("--stage-sessions", type=numbers, default=list(plan.STAGE_SESSIONS))
    parser.add_argument("--past", type=int, default=plan.STAGE_PAST, help="rows that each session of the stages has in the language model")
    parser.add_argument("--sessions", type=numbers, help="conversations in real time; default: those for which the card has memory")
    parser.add_argument("--load-seconds", type=float, default=plan.LOAD_SECONDS)
    parser.add_argument("--talk", type=lambda text: text.split(","), default=list(TALK), help="usual: 40 %% of the seconds are spoken, with 6 tokens; always: all, with 20")
    parser.add_argument("--speech", type=lambda text: text.split(","), default=list(SPEECH), help="engine.speech_dtype, in this order: " + ",".join(SPEECH))
    parser.add_argument("--traces", action="store_true", help="with the stages: what one call of each does, kernel by kernel, in traces.txt")
    parser.add_argument("--context", type=int, default=plan.CONTEXT, help="engine.context_tokens of the server")
    parser.add_argument("--dry-run", action="store_true", help="everything for a moment, on the CPU with a small model")
    how = parser.parse_args()
    if how.seconds is None:
        how.seconds = sum(plan.LIMITS.get(part, VARIANTS_LIMIT) for part in how.parts)
    if how.dry_run:
        how.device, how.stage_sessions, how.sessions, how.load_seconds, how.context = "cpu", [1, 2], [2], 3, 1024
    run = Measurement(how)
    try:
        return run.measure()
    except Deadline:
        run.row("end", error="out of time")
        run.say("out of time")
        return 1
    finally:
        print((run.out / "table.md").read_text(encoding="utf-8"), flush=True)
        if run.maker:
            run.maker[0].kill()
            run.maker[0].wait()
        if how.dry_run:
            shutil.rmtree(run.out / "model", ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
