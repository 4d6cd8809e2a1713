#!/usr/bin/env python3
"""Fails when an abandoned word comes back: each thing has one name, the standard term of the field
(docs/architecture.md, glossary)."""
import re
import sys
from pathlib import Path

from include_rules import ALLOWED, ROOT

# abandoned word -> what to use instead, and the files where it is allowed
GONE = {
    "house": ("server core, gateway, or the thing itself", {"tests/protocol/transcript.cpp"}),  # a speaker in transcripts
    "houses": ("gateways, candidates", set()),
    "front_door": ("gateway_api", set()),
    "node_door": ("node_entrance", set()),
    "inbox": ("session_handle; the commands of an engine", set()),
    "held_session": ("session_binding", set()),
    "session_link": ("client_channel", set()),
    "tenancy": ("worker_lease", set()),
    "tidings": ("lease_event", set()),
    "errand": ("lease_request", set()),
    "offered_link": ("resume_request", set()),
    "resume_pass": ("resume_token", set()),
    "queue_line": ("admission_queue", set()),
    "wait_model": ("eta_model", set()),
    "worker_board": ("worker_table", set()),
    "patron": ("gateway_client", set()),
    "place_wanted": ("affinity_request", set()),
    "pass_plan": ("schedule", set()),
    "planner": ("scheduler", set()),
    "prompt_shelf": ("prefix_cache", set()),
    "prompt_key": ("prefix_hash", set()),
    "voice_desk": ("voice_preparer", set()),
    "picture_desk": ("image_preprocessor", set()),
    "recording_desk": ("recordings_api", set()),
    "load_box": ("latest_capacity", set()),
    "engine_load": ("engine_capacity", set()),
    "worker_load": ("worker_capacity", set()),
    "job_queue": ("scheduling_policy", set()),
    "alarm": ("deadline_timer", set()),
    "draw_source": ("random_source", set()),
    "kept_unit": ("journal_input", set()),
    "kept_sound": ("compact_pcm", set()),
    "visitor": ("credentials", set()),
    "requester": ("principal", set()),
    "stranger": ("an unknown peer", set()),
    "step_back": ("lower_thread_priority", set()),
    "speak_between_nodes": ("configure_remoting", set()),
    "node_member": ("gateway_registration", set()),
    "heard_sound": ("playback_timeline", set()),
    "load_role": ("load_scenario", set()),
}
WORD = re.compile(rf"\b({'|'.join(sorted(GONE, key=len, reverse=True))})_?\b")


def problems(path: Path):
    name = str(path.relative_to(ROOT))
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        for word in WORD.findall(line):
            instead, allowed = GONE[word]
            if name not in allowed:
                yield f"{name}:{number}: '{word}': say {instead}"


def main() -> int:
    files = [f for top in [*ALLOWED, "tests", "bench"] for f in sorted((ROOT / top).rglob("*.[ch]pp"))]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [p for f in files for p in problems(f)]
    print(*found, sep="\n")
    print(f"{len(files)} files, {len(GONE)} words, {len(found)} that came back")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main())
