"""What is in deploy/."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from service import LOOKALIKE, service, text

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_dashboard_asks_for_metrics_that_exist(tmp_path):
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked += [variable["query"]["query"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    names = {name for expression in asked for name in re.findall(r"\b(?:lookalike|process)_[a-z_]+", expression)}
    assert len(names) > 20
    with service(tmp_path / "seen") as running:
        running.put({"id": "a", "text": text(1)})
        # The histogram of a route is there after its first request.
        metrics = running.call("GET", "/metrics")[1].decode()
    given = {re.split(r"[{ ]", line)[0] for line in metrics.splitlines() if line and not line.startswith("#")}
    assert names <= given, names - given
    labels = {label for expression in asked for label in re.findall(r"by \(([a-z, ]+)\)", expression)}
    for label in {one.strip() for group in labels for one in group.split(",")}:
        assert re.search(rf'[{{,]{label}="', metrics), label


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "lookalike.service").read_text()
    # The program is where it is built, not where it is installed.
    checked = tmp_path / "lookalike.service"
    checked.write_text(unit.replace("/usr/local/bin/lookalike", str(Path(LOOKALIKE).resolve())))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", checked], capture_output=True, text=True)
    # It also speaks of other units of the machine.
    ours = [line for line in verified.stderr.splitlines() if "lookalike" in line]
    assert not ours, ours
    assert verified.returncode == 0, verified.stderr
    mistaken = tmp_path / "mistaken.service"
    mistaken.write_text(checked.read_text().replace("Type=exec", "Type=exact"))
    told = subprocess.run(["systemd-analyze", "verify", "--man=no", mistaken], capture_output=True, text=True)
    assert "exact" in told.stderr, "a mistake is seen"


def test_the_image_is_built(tmp_path):
    works = lambda name: shutil.which(name) and subprocess.run([name, "info"], capture_output=True).returncode == 0
    builder = next(filter(works, ("podman", "buildah", "docker")), None)
    if builder is None:
        pytest.skip("no builder of images is installed and running: podman, buildah or docker")
    built = subprocess.run(
        [builder, "build", "-t", "lookalike-test", "-f", DEPLOY / "Containerfile", DEPLOY.parent], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr[-2000:]
