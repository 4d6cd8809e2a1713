#!/usr/bin/env bash
# On a machine with a GPU, in the checkout that bench/gpu/pack.sh has packed: is it right there, and how fast. Needs bash, and Python with PyTorch.
#   bench/gpu/run.sh [flags of measure.py]      results in $OUT, else in build/gpu/out: table.md, results.jsonl, probe.jsonl, log.txt …
#   bench/gpu/run.sh --dry                      prints the plan: which steps, and the limit of each
#   DRY=1 bench/gpu/run.sh                      the same steps on the CPU, with a small model and the programs of build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=${PYTHON:-python3}
case " $* " in
*" --dry "*)
  memory=$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits 2>/dev/null | head -1) || memory=''
  exec "$python" bench/gpu/plan.py ${memory:+--memory "$memory"}
  ;;
esac
export PYTHONUNBUFFERED=1
out=${OUT:-build/gpu/out}
mkdir -p "$out"
[ -z "${DRY:-}" ] || exec "$python" bench/gpu/measure.py --dry-run --programs "${PROGRAMS:-build/release}" --out "$out" "$@"
programs=${PROGRAMS:-${TMPDIR:-/tmp}/parley-gpu}
mkdir -p "$programs"
[ -n "${PROGRAMS:-}" ] || timeout "$("$python" bench/gpu/plan.py --limit unpack)" "$python" -m tarfile -e build/gpu/programs.tar.xz "$programs"
torch=$("$python" -c 'import importlib.util; print(importlib.util.find_spec("torch").submodule_search_locations[0])')
exec "$python" bench/gpu/measure.py --programs "$programs" --libraries "$programs/lib:$torch/lib" --out "$out" "$@"
