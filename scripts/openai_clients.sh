#!/usr/bin/env bash
# Installs the programs of others that speak OpenAI's APIs, for tests/e2e/test_openai_clients.py: once for each state of this file, from
# the package registries as pip and npm are configured. Prints the folder: ${PARLEY_CACHE:-~/.cache/parley}/openai-clients.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
cache=${PARLEY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parley}/openai-clients
mkdir -p "$cache"
exec 8>"$cache/.lock"
flock 8

# installed <name> <what> <command...>: runs the command unless it has run before with the same `what`.
installed() {
  local stamp=$cache/.$1 wanted=$2
  shift 2
  [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  "$@" >"$cache/install.log" 2>&1 || { tail -5 "$cache/install.log" >&2; exit 1; }
  echo "$wanted" >"$stamp"
}
python() {
  local venv=$cache/$1
  shift
  venv_in "$venv" && "$venv/bin/python" -m pip install -q --disable-pip-version-check "$@"
}
node() {
  local folder=$cache/$1
  shift
  mkdir -p "$folder" && cd "$folder" && npm install --silent --no-audit --no-fund "$@"
}

openai=(openai==3.57.0 websockets==17.4)
livekit=('livekit-plugins-openai[realtime]==1.8.9')
pipecat=('pipecat-ai[openai]==1.14.0')
agents=('openai-agents[realtime]==0.24.0')
npm=(openai@7.57.0 ws@8.23.0 @openai/agents-realtime@0.20.0 zod@4.6.7 openai-realtime-api@1.0.8)
frameworks=('pydantic-ai-slim[openai]==2.68.0' langchain-openai==1.7.4)
instructor=(instructor==1.17.0)
vercel=(ai@7.0.173 @ai-sdk/openai@4.0.118 @ai-sdk/openai-compatible@3.0.92 zod@4.6.7)
livekit_node=(@livekit/agents@1.9.0 @livekit/agents-plugin-openai@1.9.0 zod@4.6.7)
installed sdk "${openai[*]}" python sdk "${openai[@]}"
installed livekit "${livekit[*]}" python livekit "${livekit[@]}"
installed pipecat "${pipecat[*]}" python pipecat "${pipecat[@]}"
installed agents "${agents[*]}" python agents "${agents[@]}"
installed frameworks "${frameworks[*]}" python frameworks "${frameworks[@]}"
installed instructor "${instructor[*]}" python instructor "${instructor[@]}"
installed node "${npm[*]}" node node "${npm[@]}"
installed vercel "${vercel[*]}" node vercel "${vercel[@]}"
installed livekit_node "${livekit_node[*]}" node livekit_node "${livekit_node[@]}"
echo "$cache"
