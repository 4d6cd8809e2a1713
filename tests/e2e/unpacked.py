"""Programs of scripts/packages.unpacked.txt: those of the machine, or those that scripts/setup.sh has unpacked into the cache."""
import os
import shutil
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("PARLEY_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "parley")
UNPACKED = CACHE / "unpacked"
# An installed program finds libraries of its own version first.
ENVIRONMENT = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (os.environ.get("LD_LIBRARY_PATH"), *map(str, UNPACKED.glob("usr/lib/*-linux-gnu")))))}


def program(name: str) -> str:
    """Its path; skips the test where it is not."""
    places = [*os.environ["PATH"].split(os.pathsep), "/usr/sbin", str(UNPACKED / "usr/bin"), str(UNPACKED / "usr/sbin")]
    found = shutil.which(name, path=os.pathsep.join(places))
    if not found:
        pytest.skip(f"NOT TESTED: there is no {name} here; `scripts/setup.sh tests` unpacks it where Debian's packages can be had")
    return found
