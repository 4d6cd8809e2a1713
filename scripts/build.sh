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
  # The server alone takes less: no test framework, no browser, no linter.
  local serves=false
  [ "$preset $*" != "release parley" ] || serves=true
  case $preset in
  tsan)
    "$root/scripts/setup.sh" tsan
    extra=(-DCAF_ROOT="$PARLEY_CACHE/caf-tsan")
    ;;
  fuzz) "$root/scripts/setup.sh" fuzz ;;
  *) if $serves; then "$root/scripts/setup.sh"; else "$root/scripts/setup.sh" tests; fi ;;
  esac
  local configured=$build/CMakeCache.txt
  if $serves; then
    extra=(-DPARLEY_TESTS=OFF -DPARLEY_BENCH=OFF)
  elif grep -qs '^PARLEY_TESTS:BOOL=OFF' "$configured"; then
    configured='' # by ./run
    extra=(-DPARLEY_TESTS=ON -DPARLEY_BENCH=ON)
  fi
  if [ ! -f "$configured" ] || [ ! -f "$build/build.ninja" ]; then
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
