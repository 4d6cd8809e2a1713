#!/usr/bin/env bash
# Remakes the nano model: data, thinker, voice, export, goldens, table, curves. Every stage resumes where it stopped, or
# begins from models/nano; NANO_SHIPPED=none begins from scratch. usage: train/make.sh TEMPLATE_CHECKPOINT [output
# folder]   (PYTHON and NANO_WORK may be set; NANO_PROCESSES: cores for the long stages, default 1; *_SECONDS are CPU
# seconds)
set -euo pipefail
template=$(realpath "${1:?a complete small checkpoint in the MiniCPM-o 4.5 layout}")
out=$(realpath -m "${2:-$(dirname "$0")/../models/nano}")
cd "$(dirname "$0")"
python=${PYTHON:-python3}
export NANO_WORK=${NANO_WORK:-$HOME/.cache/parley/train}
mkdir -p "$NANO_WORK"
source ./env.sh
processes=${NANO_PROCESSES:-1}
stage() { if [ "$processes" -gt 1 ]; then "$python" -m nano.together "$processes" "$@"; else "$python" -m "nano.$1" "${@:2}"; fi; }

$python -m nano.shipped
[ -e "$NANO_WORK/tokenizer/vocab.json" ] || $python -m nano.tokenizer "$template" "$NANO_WORK/tokenizer"
[ -e "$NANO_WORK/bank_outside1.json" ] || $python -m nano.synth 14000 "$processes" 24000
[ -e "$NANO_WORK/voice.pt" ] || $python -m nano.voice 2400
$python -m nano.train_text "${TEXT_SECONDS:-3600}" 3e-3
$python -m nano.train_ctc "${PHONE_SECONDS:-600}" 2.5e-3
$python -m nano.train_ctc "${TOKEN_SECONDS:-1200}" 2.5e-3 tokens
$python -m nano.train_tower "${TOWER_SECONDS:-600}" 3e-3
stage train_joint "${JOINT_SECONDS:-7200}" 1.5e-3
$python -m nano.train_calls "${CALLS_SECONDS:-3600}" 8e-4
$python -m nano.average "$NANO_WORK/joint.pt" "$NANO_WORK/mean.pt" 0.5 "$NANO_WORK/calls.pt"
$python -m nano.train_codec "${CODEC_SECONDS:-900}" 2e-3 tokens
$python -m nano.train_codec "${FLOW_SECONDS:-900}" 1.5e-3 flow
$python -m nano.train_vocoder "${VOCODER_SECONDS:-1800}" 6e-4
stage train_talker "${TALKER_SECONDS:-1800}" 3e-3
$python -m nano.export "$NANO_WORK/mean.pt" "$template" "$out" hearing seeing speaking
$python -m nano.export_speech "$out"
$python -m nano.goldens "$out" "$NANO_WORK/goldens"
$python -m nano.evaluate "$out" all 240 | tee "$NANO_WORK/table.md"
$python -m nano.curves curves
