"""packaging/helm, rendered by Helm's own library and checked against the schemas of Kubernetes; and each setting in it against Parley."""
import os
import subprocess

import pytest

from conftest import BINARY, ROOT

try:
    import helm_python as helm
    import kubernetes_validate
    import yaml
except ImportError as lack:
    pytest.skip(f"NOT TESTED: {lack}; `scripts/setup.sh tests` installs scripts/requirements.packaging.txt where pip finds it", allow_module_level=True)

CHART = ROOT / "packaging/helm"
GPU = {"workers": {"gpus": 1, "replicas": 4, "image": "parley:cuda", "model": {"claim": "weights", "path": "MiniCPM-o-4_5"}, "drainSeconds": 90},
       "gateway": {"tls": False, "journal": {"enabled": False}, "settings": {"PARLEY_LIMITS_DRAIN_SECONDS": "60"}}, "secrets": {"keys": ""}}


def rendered(values: dict) -> dict[tuple[str, str], dict]:
    with helm.Chart.load(str(CHART)) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name="talk", namespace="voices")
    parts = [part for text in files.values() for part in yaml.safe_load_all(text) if part]
    named = {(part["kind"], part["metadata"]["name"]): part for part in parts}
    assert len(named) == len(parts)
    return named


def pod(part: dict) -> dict:
    return part["spec"]["template"]["spec"]


def environment(part: dict) -> dict[str, str]:
    listed = pod(part)["containers"][0]["env"]
    assert len({each["name"] for each in listed}) == len(listed)
    return {each["name"]: each["value"] for each in listed if "value" in each}


def test_lint():
    found = helm.lint(str(CHART))
    messages = found["messages"] if isinstance(found, dict) else found
    assert not [each for each in messages if each["severity"] > 1], messages  # 1 is "icon is recommended"


@pytest.mark.parametrize("values", [{}, GPU, {"workers": {"replicas": 0}, "imagePullSecrets": [{"name": "registry"}]}], ids=["default", "gpu", "empty"])
@pytest.mark.parametrize("version", ["1.29.0", "1.37.0"])
def test_kubernetes_takes_it(values, version):
    for part in rendered(values).values():
        kubernetes_validate.validate(part, version, strict=True)


def test_the_service_monitor_is_rendered_on_request():
    """The Prometheus operator's kind has no schema here, so its members are looked at."""
    endpoint = rendered({"serviceMonitor": {"enabled": True}})["ServiceMonitor", "talk"]["spec"]["endpoints"][0]
    assert endpoint["authorization"]["credentials"] == {"name": "parley-scrape", "key": "key"} and endpoint["scheme"] == "https"


@pytest.mark.parametrize("values", [{}, GPU], ids=["default", "gpu"])
def test_parley_takes_the_settings(values, tmp_path):
    parts = rendered(values)
    shown = {}
    for kind, name in (("StatefulSet", "talk-gateway"), ("Deployment", "talk-worker")):
        variables = environment(parts[kind, name])
        assert len(variables) >= 8
        done = subprocess.run([BINARY, "check-config", "/dev/null"], capture_output=True, text=True, timeout=60, env=os.environ | variables)
        assert done.returncode == 0, done.stderr
        shown[name] = done.stdout
        for setting, value in variables.items():
            section, _, key = setting.removeprefix("PARLEY_").lower().partition("_")
            if setting.startswith("PARLEY_"):
                assert f"\n{key} = {value}\n" in done.stdout or f'\n{key} = "{value}"\n' in done.stdout, (section, key, value)
    assert 'dir = "/var/lib/parley/journal/sessions"' in shown["talk-gateway"] or values is GPU


def test_what_matters_of_the_gateway_and_its_workers():
    parts = rendered({})
    gateway, worker = parts["StatefulSet", "talk-gateway"], parts["Deployment", "talk-worker"]
    assert environment(worker)["PARLEY_NODES_JOIN"] == "talk-nodes:8007" and ("Service", "talk-nodes") in parts
    for part in (gateway, worker):
        assert pod(part)["terminationGracePeriodSeconds"] > int(environment(part)["PARLEY_LIMITS_DRAIN_SECONDS"])
        assert pod(part)["securityContext"]["runAsNonRoot"] and pod(part)["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    container = pod(gateway)["containers"][0]
    assert container["readinessProbe"]["httpGet"] == {"path": "/ready", "port": "clients", "scheme": "HTTPS"}
    assert container["lifecycle"]["preStop"]["exec"]["command"][0] == "sleep"
    journal = environment(gateway)["PARLEY_JOURNAL_DIR"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert journal.startswith(mounts["journal"] + "/"), "a folder of its own, which Parley makes with the mode that it needs"
    assert gateway["spec"]["volumeClaimTemplates"][0]["metadata"]["name"] == "journal"


def test_gpus_are_asked_for():
    parts = rendered(GPU)
    container = pod(parts["Deployment", "talk-worker"])["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1} and container["image"] == "parley:cuda"
    assert environment(parts["Deployment", "talk-worker"])["PARLEY_WORKER_MODEL"] == "/models/MiniCPM-o-4_5"
    assert environment(parts["StatefulSet", "talk-gateway"])["PARLEY_LIMITS_DRAIN_SECONDS"] == "60", "what the operator sets wins"
    assert "volumeClaimTemplates" not in parts["StatefulSet", "talk-gateway"]["spec"]


@pytest.mark.parametrize("values", [{"gatway": {}}, {"workers": {"gpus": 2}}, {"settings": {"LIMITS": "1"}}, {"settings": {"PARLEY_LIMITS_DRAIN_SECONDS": 3}}])
def test_mistakes_in_values_are_refused(values):
    with pytest.raises(helm.HelmError):
        rendered(values)
