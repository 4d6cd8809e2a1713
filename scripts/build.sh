# Shared by ./run and ./test: set the machine up, configure a preset, build. Sourced, not run.
#   prepare <preset> [ninja target…]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export PARLEY_CACHE=${PARLEY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parley}
export NINJA_STATUS='[%f/%t %es] '

prepare() {
  local preset=$1 extra=()
  shift
  local build=$root/build/$preset
  if [ "$preset" = tsan ]; then
    "$root/scripts/setup.sh" tsan
    extra=(-DCAF_ROOT="$PARLEY_CACHE/caf-tsan")
  elif [ "$preset" = fuzz ]; then
    "$root/scripts/setup.sh" fuzz
  else
    "$root/scripts/setup.sh"
  fi
  if [ ! -f "$build/build.ninja" ]; then
    (cd "$root" && cmake --preset "$preset" "${extra[@]}") >"$PARLEY_CACHE/configure.log" 2>&1 || { cat "$PARLEY_CACHE/configure.log" >&2; return 1; }
  fi
  # A compiler that sees LibTorch or Beast needs up to 2 GiB: never more jobs than the memory carries.
  local jobs memory
  jobs=$(nproc)
  memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  [ "$memory" -ge "$jobs" ] || jobs=$((memory > 0 ? memory : 1))
  local targets=()
  for t in "$@"; do targets+=(--target "$t"); done
  cmake --build "$build" -j "$jobs" "${targets[@]}" >&2
}
