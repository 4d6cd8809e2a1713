#!/usr/bin/env python3
"""Fails if mypy --strict finds fault with the Python package, for the oldest Python that it is for, or with an example of docs/python.md."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    oldest = re.search(r'requires-python = ">=([\d.]+)"', (ROOT / "packaging/wheel/pyproject.toml.in").read_text(encoding="utf-8"))[1]
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(encoding="utf-8"), re.S)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"example_{number}.py" for number in range(1, len(examples) + 1)]
        for file, example in zip(files, examples):
            file.write_text(example, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--python-version", oldest, "--cache-dir", folder, "-p", "parley"]
        done = [subprocess.run(arguments, cwd=ROOT, env=os.environ | {"MYPYPATH": "python"}, capture_output=True, text=True) for arguments in
                (command, [*command[:-2], *map(str, files)])]
    print(*(run.stdout + run.stderr for run in done))
    return 1 if any(run.returncode for run in done) or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
