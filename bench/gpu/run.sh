#!/usr/bin/env bash
# On a machine with a GPU, in the checkout that bench/gpu/pack.sh has packed: is it right there, and how fast. Needs bash, and Python with PyTorch.
#   bench/gpu/run.sh [flags of measure.py]      results in $OUT, else in build/gpu/out: table.md, results.jsonl, log.txt
#   bench/gpu/run.sh --dry-run                  the same steps on the CPU, with a small model and the programs of build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${PYTHON:-python3}
out=${OUT:-build/gpu/out}
mkdir -p "$out"
case " $* " in
*" --dry-run "*)
  exec "$python" bench/gpu/measure.py --programs "${PROGRAMS:-build/release}" --out "$out" "$@"
  ;;
esac
programs=${PROGRAMS:-${TMPDIR:-/tmp}/parley-gpu}
mkdir -p "$programs"
[ -n "${PROGRAMS:-}" ] || "$python" -m tarfile -e build/gpu/programs.tar.xz "$programs"
torch=$("$python" -c 'import importlib.util; print(importlib.util.find_spec("torch").submodule_search_locations[0])')
exec "$python" bench/gpu/measure.py --programs "$programs" --libraries "$programs/lib:$torch/lib" --out "$out" "$@"
