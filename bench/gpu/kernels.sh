#!/usr/bin/env bash
# After first.sh, on the same machine: which kernels take the time of one stage, by NVIDIA's profiler. About 40 s for a window.
#   bench/gpu/kernels.sh STAGE SESSIONS SKIP COUNT     e.g. window 16 16000 4000: the kernels from the 16,000th on. Leaves $OUT/kernels.txt
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
stage=$1 sessions=$2 skip=$3 count=$4
out=${OUT:-build/gpu/out} python=${PYTHON:-python3} p=${PROGRAMS:-/tmp/parley-gpu}
model=$(ls -d /dev/shm/parley-full-size "${TMPDIR:-/tmp}/parley-full-size" build/parley-full-size 2>/dev/null | head -1)
torch=$($python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
LD_LIBRARY_PATH=$p/lib:$torch/lib timeout -k 5 "${LIMIT:-60}" ncu --clock-control none --metrics gpu__time_duration.sum --csv --page raw --launch-skip "$skip" --launch-count "$count" \
  "$p/gpu_stages" --no-graphs --model "$model" --stages "$stage" --sessions "$sessions" --seconds 0.1 >/tmp/kernels.csv 2>/tmp/kernels.err
tail -2 /tmp/kernels.err
$python - /tmp/kernels.csv <<'PYTHON' | tee "$out/kernels.txt"
import collections, csv, sys
lines = [line for line in open(sys.argv[1], encoding="utf-8", errors="replace") if line.startswith('"')]
rows = list(csv.DictReader(lines))
time = next((name for name in (rows[0] if rows else {}) if name.startswith("gpu__time_duration")), None)
unit = rows[0][time] if rows else ""  # the first row has the units
sums, counts = collections.Counter(), collections.Counter()
for row in rows[1:]:
    try:
        sums[row["Kernel Name"]] += float(row[time].replace(",", ""))
    except ValueError:
        continue
    counts[row["Kernel Name"]] += 1
print(f"{sum(counts.values())} kernels, {sum(sums.values()):.0f} {unit} in all")
for name, total in sums.most_common(25):
    print(f"{total:12.0f} {unit} {counts[name]:5} x {name[:110]}")
PYTHON
