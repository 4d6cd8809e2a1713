#!/usr/bin/env bash
# Call 2, at once after call 1 (the model is still there): conversations in real time, then the rest of parity. ~240 s, at most 330.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
export PYTHONUNBUFFERED=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
out=${OUT:-build/gpu/out} python=${PYTHON:-python3} p=${PROGRAMS:-/tmp/parley-gpu} dev=${DEV:-cuda:0}
mkdir -p "$out"
torch=$($python -c 'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
m=$(cat /tmp/full.where 2>/dev/null || echo /tmp/full)
more=(); [ -e "$m/.complete" ] && more=(--folder "$m")
# What memory admits by inference/engine/capacity.cpp: 73 slots of 2048 rows on 80 GB, 147 on 141 GB. A refused server costs a load of 18 GB.
sizes=16,20,32,64
[ "$(nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits | head -1)" -gt 100000 ] 2>/dev/null && sizes=16,32,64,128
m1=(--programs $p --libraries "$p/lib:$torch/lib" --device $dev --out "$out" "${more[@]}")
$python bench/gpu/measure.py "${m1[@]}" --seconds ${SESSIONS_FOR:-190} --parts sessions --sessions ${SIZES:-$sizes} --load-seconds ${LOAD:-18} --talk ${TALK:-usual,always} --context 2048 2>&1 | tail -30
[ -n "${NO_PARITY:-}" ] || $python bench/gpu/measure.py "${m1[@]}" --seconds 130 --parts parity 2>&1 | tail -30
