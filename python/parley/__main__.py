"""The command `parley`, which `python -m parley` is too: becomes the program of this package."""

from __future__ import annotations

import os
import sys

from parley.program import problem_with_torch, program, program_environment


def main() -> int:
    try:
        path = program()
    except FileNotFoundError as missing:
        problem: str | None = str(missing)
    else:
        problem = None if os.environ.get("PARLEY_BINARY") else problem_with_torch()
    if problem is not None:
        print(f"parley: {problem}", file=sys.stderr)
        return 1
    os.execve(path, ["parley", *sys.argv[1:]], program_environment())


if __name__ == "__main__":
    sys.exit(main())
