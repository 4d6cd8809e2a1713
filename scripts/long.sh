#!/usr/bin/env bash
# What takes longer than a change should wait for: each fuzz target searched for FUZZ_SECONDS (60), a soak of SOAK_SECONDS (1800) on the
# sanitized server, then the container image (scripts/image.sh), the wheel on fresh systems (scripts/wheel_systems.sh), the Debian package on one
# (scripts/deb_system.sh), a drill of what happens to a cluster at night (scripts/drill.py), and a release made twice
# (scripts/release.sh), which must come out the same. Stops at the first finding. New inputs of the fuzzers go to
# build/fuzz/found; what broke a target is named there.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
prepare fuzz fuzzers
cd "$root"
total=0
for target in build/fuzz/*_fuzz; do
  name=$(basename "$target" _fuzz)
  mkdir -p "build/fuzz/found/$name"
  log=build/fuzz/$name.log
  if ! "$target" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="build/fuzz/$name-" \
    "build/fuzz/found/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    tail -30 "$log" >&2
    exit 1
  fi
  runs=$(awk '/^Done/ {print $2}' "$log")
  total=$((total + runs))
  echo "fuzz: $name: $runs runs, no finding"
done
echo "fuzz: $total runs in all"

prepare dev parley
ASAN_OPTIONS=detect_leaks=1 OMP_NUM_THREADS=1 \
  "$PARLEY_CACHE/venv/bin/python" scripts/soak.py build/dev/parley --seconds "${SOAK_SECONDS:-1800}" --folder build/dev --json build/dev/soak.json

scripts/image.sh

scripts/wheel_systems.sh
scripts/deb_system.sh

prepare release parley
"$PARLEY_CACHE/venv/bin/python" scripts/drill.py

for time in first second; do scripts/release.sh "build/$time" >&2; done
cmp build/first/SHA256SUMS build/second/SHA256SUMS
echo "release: twice the same"
