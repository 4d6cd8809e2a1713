#!/usr/bin/env python3
"""Turns the rows that bench/gpu/measure.py has written into Markdown.

What it says of conversations is defined as in sglang-omni's benchmark of full-duplex models, so that figures can stand side by side. A unit is *late* if
its answer is complete more than a second, a unit's length, after it could start, and so is one that is never answered. *Lag* is the time from then to the
answer. A *reply* is the first sound of a turn, from when the unit that it begins with could start. *Underrun* is the silence that a player inserts inside
replies, as a share of their sound; it begins to play 80 ms after a reply's first sound. Here a unit could start when it was due to be sent, so that a load
generator which falls behind makes nothing look better; how late it sent is shown, too."""
import argparse
import json
import sys
from pathlib import Path

Row = dict
PLAYBACK_LEAD = 0.08  # seconds, of `parley load --playback-lead`


def read(file: Path) -> list[Row]:
    """All whole rows; the last one may have been cut off."""
    rows = []
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def number(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def milliseconds(value: float | None) -> str:
    return number(value, 0 if value is not None and value >= 100 else 1 if value is not None and value >= 10 else 2)


def short(error: str) -> str:
    return error.replace("|", "/").replace("\n", " ")[:100]


def lines(head: list[str], body: list[list[str]]) -> list[str]:
    if not body:
        return []
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *body)] + [""]


def of(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def machines(rows: list[Row]) -> list[str]:
    text = []
    for m in of(rows, "machine"):
        gpu = f"{m['gpu']}, {m['gpu_memory_mib']} MiB, driver {m['driver']}" if m["gpu"] else "no GPU"
        dry = "; a dry run: its figures mean nothing" if m["dry_run"] else ""
        text += [f"{m['date']}: {m['version']}; device {m['device']} ({gpu}), {m['cores']} CPU cores, {m['memory_gib']} GiB{dry}.", ""]
    return text


def probe(rows: list[Row]) -> list[str]:
    text = []
    for r in of(rows, "probe"):
        failed = f": {short('; '.join(r['failed']))}" if r["failed"] else ""
        text += [f"The probe: {r['passed']} passed, {len(r['failed'])} failed{failed}" + (f"; {short(r['error'])}" if r["error"] else "") + ".", ""]
    return text


def parity(rows: list[Row]) -> list[str]:
    body = [[r["goldens"], r["device"], r["dtype"], short(r["error"]) if r["error"] else f"{r['passed']} passed, {r['failed']} failed",
             number(r["seconds"])] for r in of(rows, "parity")]
    rounding = [f"In bfloat16, {r['goldens']}: errors on {r['device']} are at most {number(r['ratio'], 2)} times the CPU's; "
                f"{number(r['allowed'], 0)} are allowed." for r in of(rows, "bfloat16")]
    return lines(["goldens", "device", "dtype", "cases", "s"], body) + rounding + [""] * bool(rounding)


def model(rows: list[Row]) -> list[str]:
    body = [[r["step"], short(r["error"]) if r["error"] else "ok", number(r.get("gigabytes"), 2), number(r["seconds"])] for r in of(rows, "model")]
    return lines(["model folder", "", "GB", "s"], body)


def stages(rows: list[Row]) -> list[str]:
    timed = of(rows, "stages")
    counts = sorted({r["sessions"] for r in timed if "sessions" in r})
    body: dict[tuple[str, str], dict[int, str]] = {}
    notes = []
    for r in timed:
        key = (r["stage"], r["variant"])
        if r["stage"] == "load":
            notes.append(f"{r['variant']}: loaded in {number(r['seconds'])} s as {r['dtype']}, {number(r['memory_mib'], 0)} MiB on {r['device']}.")
        elif "sessions" not in r:
            notes.append(f"{r['variant']}: {r['stage']} failed: {short(r['error'])}.")
        elif "error" in r:
            body.setdefault(key, {})[r["sessions"]] = "failed"
            notes.append(f"{r['variant']}, {r['stage']}, {r['sessions']} sessions: {short(r['error'])}.")
        else:
            cell = f"{milliseconds(r['p50_ms'])} / {milliseconds(r['p95_ms'])}"
            body.setdefault(key, {})[r["sessions"]] = cell + (f" ({number(r['memory_mib'] / 1024)} GiB)" if r.get("memory_mib", 0) >= 1024 else "")
    head = ["stage, ms p50 / p95", "variant", *(f"{n} sessions" for n in counts)]
    return lines(head, [[*key, *(cells.get(n, "–") for n in counts)] for key, cells in body.items()]) + [line for note in notes for line in (note, "")]


def share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def conversation(load: Row) -> list[str]:
    """What one load of `parley load --json` shows; its units that were not due when it ended are in no figure."""
    unit, sound, sent = (load["milliseconds"][name] for name in ("unit_latency", "first_sound", "sent_late"))
    units, heard = load["units"], load["sound"]
    judged = units["answered"] + units["unanswered"]
    return [str(load["sessions"]["at_once"]), f"{units['answered']} / {units['spoken']}", f"{load['deadline_misses']} ({share(load['deadline_misses'], judged)})",
            f"{milliseconds(unit['p50'])} / {milliseconds(unit['p95'])} / {milliseconds(unit['p99'])}",
            f"{milliseconds(sound['p50'])} / {milliseconds(sound['p95'])}", f"{share(heard['gap_seconds'], heard['seconds'])} in {heard['gaps']}",
            milliseconds(sent["p99"])]


def sessions(rows: list[Row]) -> list[str]:
    head = ["sessions", "they speak", "networks", "at once", "units answered / spoken", "late", "lag, ms p50 / p95 / p99", "reply, ms p50 / p95", "underrun, in gaps",
            "sent late, ms p99", "GPU memory, MiB", "GPU, %"]
    body, notes = [], []
    for r in of(rows, "serve"):
        notes.append(f"A server with {r['slots']} slots, {r.get('speech', 'float32')}: {short(r['error']) if r['error'] else 'ready after ' + number(r['seconds']) + ' s'}.")
    for r in of(rows, "sessions"):
        seen = [short(r["error"]), *["–"] * 6] if "error" in r else conversation(r["load"])
        body.append([str(r["sessions"]), r.get("talk", "always"), r.get("speech", "float32"), *seen, number(r["memory_mib"], 0), number(r["utilization"], 0)])
    for r in of(rows, "sessions"):
        calls = ", ".join(f"{stage} {count} x {1e3 * seconds / count:.1f} ms" for stage, (count, seconds) in sorted(r.get("calls", {}).items()) if count)
        notes += [f"{r['sessions']} {r['talk']}, {r['speech']}: {calls}."] if calls else []
    return lines(head, body) + [line for note in notes for line in (note, "")]


def render(rows: list[Row]) -> str:
    ends = [f"It ended early: {short(r['error'])}." for r in of(rows, "end")]
    return "\n".join([*machines(rows), *probe(rows), *parity(rows), *model(rows), *stages(rows), *sessions(rows), *ends]).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="results.jsonl, of one call or of several")
    print(render([row for file in parser.parse_args().results for row in read(file)]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
