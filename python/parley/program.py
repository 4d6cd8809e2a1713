"""Where the program `parley` is, and what it takes to start it.

In the wheel it lies in this package, and finds LibTorch in the package torch beside this one, by its RPATH. Where torch is in another folder, as in an environment made
with --system-site-packages, it is told by LD_LIBRARY_PATH."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
from pathlib import Path

DISTRIBUTION = "parley-server"
PACKAGE = Path(__file__).resolve().parent


def program() -> Path:
    """The program of this package, or the one that the variable PARLEY_BINARY names. Raises FileNotFoundError if there is none."""
    named = os.environ.get("PARLEY_BINARY")
    path = Path(named) if named else PACKAGE / "bin" / "parley"
    if not path.is_file():
        raise FileNotFoundError(f"there is no program {path}: install the wheel, or name a program in PARLEY_BINARY")
    return path


def torch_folder() -> Path | None:
    """The package torch, which is not imported."""
    spec = importlib.util.find_spec("torch")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def program_environment() -> dict[str, str]:
    """The environment that the program is started with."""
    environment = dict(os.environ)
    torch = torch_folder()
    if torch is not None and torch.parent != PACKAGE.parent:
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, (str(torch / "lib"), environment.get("LD_LIBRARY_PATH"))))
    return environment


def problem_with_torch() -> str | None:
    """Why the program of this package cannot start, in one line with what to do, or None. LibTorch promises nothing to programs built with another version of it."""
    try:
        wanted = next(found[1] for line in importlib.metadata.requires(DISTRIBUTION) or () if (found := re.match(r"torch *== *([\d.]+)", line)))
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        return None  # not from a wheel
    try:
        there = importlib.metadata.version("torch").partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return f"LibTorch is missing: pip install torch=={wanted}"
    return None if there == wanted else f"built with torch {wanted}, but torch {there} is installed: pip install torch=={wanted}"
