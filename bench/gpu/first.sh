#!/usr/bin/env bash
# Call 1: what decides everything, in the order of its worth. Every step writes to $OUT at once and has its own limit. ~200 s, at most 285.
#   bash bench/gpu/first.sh            (DRY=1: on the CPU with small models, and PROGRAMS a folder)
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export PYTHONUNBUFFERED=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
out=${OUT:-build/gpu/out} here=$PWD python=${PYTHON:-python3}
mkdir -p "$out"
say() { echo "== $(date +%T) $*" | tee -a "$out/steps.txt"; }
dev=cuda:0 preset=minicpm-o-4.5 size=22000000
words=(--tokenizer tests/data/goldens/thinker/tokenizer_full)
counts=${COUNTS:-1,16,64} past=2048
[ -z "${DRY:-}" ] || { dev=cpu preset=tiny size=1000 words=() counts=1,2 past=600; }

# 1. Unpack, and write the full-size folder beside all that follows (one core, 30 to 80 s).
p=${PROGRAMS:-/tmp/parley-gpu}
[ -n "${PROGRAMS:-}" ] || { mkdir -p $p && $python -m tarfile -e build/gpu/programs.tar.xz $p; }
torch=$($python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
export LIBS=$p/lib:$torch/lib
run() { LD_LIBRARY_PATH=$LIBS timeout -k 5 "$@"; }
m=/tmp/full
[ "$(df --output=avail /dev/shm | tail -1)" -gt $size ] && [ "$(awk '/MemAvailable/{print $2}' /proc/meminfo)" -gt $((2 * size)) ] && m=/dev/shm/full
echo $m >/tmp/full.where
say "unpacked; the model goes to $m"
(run 150 $p/parley init-model --preset $preset --seed 1 "${words[@]}" --out $m >>"$out/steps.txt" 2>&1 && touch $m/.complete) &
maker=$!

# 2. The questions (probe.jsonl, probe.txt).
[ "${PROBE:-100}" = 0 ] || timeout -k 5 ${PROBE:-100} $python bench/gpu/probe.py --seconds $((${PROBE:-100} - 15)) --programs $p 2>&1 | tee "$out/probe.txt"
[ "${PROBE:-100}" = 0 ] || say "probe: $(grep -c ^PASS "$out/probe.txt") pass, $(grep -c ^FAIL "$out/probe.txt") fail"

# 3. Is nano right there? In float32 with fused attention; if not, is attention to blame?
nano() { run 40 $p/parley verify --model models/nano --goldens tests/data/goldens/nano --device $dev "$@" 2>&1 | grep -v '^ok ' | tail -8 | tee -a "$out/steps.txt" | cut -c1-300; }
say nano float32; nano
tail -1 "$out/steps.txt" | grep -q ' 0 failed' || { say nano, plain attention; nano --plain-attention; }

say whole conversations, float32
run 60 $p/parley verify --model models/tiny-omni --goldens tests/data/goldens/e2e --device $dev 2>&1 | grep -v '^ok ' | tail -8 | tee -a "$out/steps.txt" | cut -c1-300

# 4. Stages of the full-size model (results.jsonl, table.md).
wait $maker; say "the model is written: $(du -sm $m | cut -f1) MB"
left=$((${STAGES_BY:-285} - SECONDS)); [ $left -gt 30 ] || { say "no time for stages"; exit 0; }
$python bench/gpu/measure.py --programs $p --libraries "$LIBS" --device $dev --folder $m --out "$out" --seconds $((left - 5)) --parts model,stages \
  --stage-sessions $counts --past $past 2>&1 | tail -40
say "stages end"
# 5. At once the conversations, if attention is right (what bfloat16 rests on).
[ -n "${THEN:-}" ] || exit 0
if grep -sE '^FAIL (flash|programs)' "$out/probe.txt"; then say "no conversations: the probe failed"; exit 1; fi
bash bench/gpu/second.sh
say end
