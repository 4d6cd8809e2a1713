"""docs/alerts.yaml: checked by promtool, quiet while nothing is wrong, each alert fires when it should, and all ask for what Parley counts."""
import json
import re
import subprocess

import pytest

from conftest import ROOT
from realtime import http
from unpacked import program

ALERTS = ROOT / "docs/alerts.yaml"
NAMES = re.findall(r"^ +- alert: (\w+)$", ALERTS.read_text(), re.M)
EXPRESSIONS = re.findall(r"^ +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)", ALERTS.read_text(), re.M)

# A series of an end begins with the first session that ends so.
REASONS = (ROOT / "protocol/session/closing.hpp").read_text()

# Of one gateway in one hour, a value every 15 s, in promtool's notation.
QUIET = {
    'up{}': "1x240",
    'parley_worker_up{worker="1"}': "1x240",
    'parley_worker_info{worker="1",node="gpu-1",device="cuda:0"}': "1x240",
    'parley_queue_length{}': "0 5x30 0x209",  # seven minutes of waiting
    'parley_units_total{worker="1",answer="listen"}': "0+100x240",
    'parley_deadline_misses_total{worker="1"}': "0x220 3x20",
    'parley_sessions_ended_total{mode="audio",reason="user_stop"}': "0+1x240",
    'parley_sessions_ended_total{mode="audio",reason="backend_error"}': "0x240",
    'parley_errors_total{code="inference_error"}': "0x240",
    'parley_errors_total{code="invalid_event"}': "0+1x240",
    'parley_invariant_violations_total{}': "0x240",
    'parley_journal_lost_sessions_total{}': "0x240",
    'parley_journal_not_copied_total{}': "0x240",
    'parley_journal_copy_behind_bytes{}': "1000000x240",
    'parley_recording_failures_total{}': "0x240",
    'parley_recording_dropped_events_total{}': "0x240",
    'parley_refused_total{reason="key"}': "0+1x240",
}
# What is different when something is wrong: the alerts that fire, and the series. None = there is none.
WRONG = [
    (["ParleyDown"], dict.fromkeys(QUIET) | {'up{}': "0x240"}),
    (["ParleyNoWorker"], {'parley_worker_up{worker="1"}': None, 'parley_worker_info{worker="1",node="gpu-1",device="cuda:0"}': None}),
    (["ParleyNoWorker", "ParleyWorkerDown"], {'parley_worker_up{worker="1"}': "1x120 0x120"}),
    (["ParleyWorkerDown"], {'parley_worker_up{worker="2"}': "0x240", 'parley_worker_info{worker="2",node="gpu-2",device="cuda:0"}': "1x240"}),
    (["ParleyQueue"], {'parley_queue_length{}': "1x240"}),
    (["ParleyLate"], {'parley_deadline_misses_total{worker="1"}': "0+2x240"}),
    (["ParleyConversationsLost"], {'parley_sessions_ended_total{mode="audio",reason="backend_error"}': "0x230 1x10"}),
    (["ParleyEngineErrors"], {'parley_errors_total{code="inference_error"}': "0x230 1x10"}),
    (["ParleyDefect"], {'parley_invariant_violations_total{}': "0x100 1x140"}),
    (["ParleyJournalLost"], {'parley_journal_lost_sessions_total{}': "0x230 1x10"}),
    (["ParleyNotCopied"], {'parley_journal_not_copied_total{}': "0+1x240"}),
    (["ParleyNotCopied"], {'parley_journal_copy_behind_bytes{}': "70000000x240"}),
    (["ParleyRecordingFails"], {'parley_recording_failures_total{}': "0x230 1x10"}),
    (["ParleyRecordingFails"], {'parley_recording_dropped_events_total{}': "0x230 9x10"}),
    (["ParleyKeysTried"], {'parley_refused_total{reason="key"}': "0+30x240"}),
]


def of_gateway(series: str) -> str:
    name, labels = series.removesuffix("}").split("{")
    return name + "{" + ",".join(filter(None, ('job="parley",instance="a"', labels))) + "}"


def scenario(name: str, firing: list[str], changes: dict) -> dict:
    series = {each: values for each, values in (QUIET | changes).items() if values is not None}
    return {
        "name": name,
        "interval": "15s",
        "input_series": [{"series": of_gateway(each), "values": values} for each, values in series.items()],
        "promql_expr_test": [{"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "1h",
                              "exp_samples": [{"labels": f'{{alertname="{each}"}}', "value": 1} for each in firing]}],
    }


def test_promtool_takes_them():
    done = subprocess.run([program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", ALERTS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and f"{len(NAMES)} rules found" in done.stdout, done


def test_each_fires_when_it_should_and_no_other(tmp_path):
    assert {each for firing, _ in WRONG for each in firing} == set(NAMES)
    scenarios = [scenario("a quiet night", [], {})] + [scenario(f"{firing} {list(changes)}", firing, changes) for firing, changes in WRONG]
    rules = {"rule_files": [str(ALERTS)], "evaluation_interval": "15s", "tests": scenarios}
    (tmp_path / "tests.yaml").write_text(json.dumps(rules))  # JSON is YAML
    done = subprocess.run([program("promtool"), "test", "rules", tmp_path / "tests.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_scrape_example(tmp_path):
    example = re.search(r"```yaml\n(scrape_configs:\n.*?)```", (ROOT / "docs/operations.md").read_text(), re.S)[1]
    assert "job_name: parley\n" in example, "the job that the alerts expect"
    for name in set(re.findall(r"/etc/prometheus/(\S+)", example)):
        (tmp_path / name).write_text("")
    (tmp_path / "prometheus.yaml").write_text(example.replace("/etc/prometheus", str(tmp_path)))
    done = subprocess.run([program("promtool"), "check", "config", tmp_path / "prometheus.yaml"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done


@pytest.mark.parametrize("text", [a or b for a, b in EXPRESSIONS] + re.findall(r"^ +query: (.*)$", (ROOT / "docs/operations.md").read_text(), re.M))
def test_they_ask_only_for_what_there_is(text, server):
    families = http(server, "/metrics")[1]
    for name in re.findall(r"\bparley_\w+", text):
        assert re.search(rf"^# TYPE {name} ", families, re.M), name
        for label, value in re.findall(rf"{name}\{{(\w+)=~?\"([^\"]+)\"", text):
            for one in value.split("|"):
                assert re.search(rf'^{name}\{{[^}}]*{label}="{one}"', families, re.M) or f'"{one}"' in REASONS, (name, label, one)


def test_all_expressions_were_found():
    assert len(EXPRESSIONS) == len(NAMES) >= 10
