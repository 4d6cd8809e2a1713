#!/usr/bin/env bash
# Brings a bare Debian 12 to the point where CMake can configure Parley. Safe to run again: a second run takes a moment.
#   scripts/setup.sh            what building and serving take: compiler, libraries, LibTorch
#   scripts/setup.sh tests      also what the tests take: Catch2, Chromium, clang-format, clang-tidy, Python packages, proxies
#   scripts/setup.sh tsan       as tests, and CAF rebuilt from Debian's source package with ThreadSanitizer
#   scripts/setup.sh fuzz       as tests, and clang with libFuzzer
#   scripts/setup.sh image      as tests, and what builds and runs the image of packaging/Dockerfile
# What it builds or downloads outside the package manager goes to ${PARLEY_CACHE:-~/.cache/parley}, shared by all checkouts.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${PARLEY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/parley}

# --- What else it takes, where this script cannot help ------------------------------------------------------------------
os=$(. "${OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID:-} ${VERSION_ID:-} ${PRETTY_NAME:-}") || os="? ? an unknown system"
case $os in
"debian 12 "*) ;;
*)
  printf 'setup: %s\n' "this sets up Debian 12 and nothing else (here: ${os#* * }). The wheel serves here all the same: \
docker run --rm -v \"\$PWD\":/src -w /src debian:12 packaging/wheel/build.sh && pip install build/wheel/*.whl && parley serve (docs/install.md). By hand: install what scripts/packages.txt lists and the Python package torch, then \
cmake --preset release -DTORCH_ROOT=SITE_PACKAGES/torch && cmake --build build/release --target parley && build/release/parley serve" >&2
  exit 1
  ;;
esac

mkdir -p "$cache"
exec 8>"$cache/.lock"
flock 8 # one set-up at a time, whatever the checkout

say() { printf 'setup: %s\n' "$*" >&2; }
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    say "no root, and no sudo: run this as root once, or install the packages of ${lists[*]}"
    return 1
  fi
}
# apt_get <arguments>: what it says is shown if it fails.
apt_get() { as_root apt-get -q "$@" >>"$cache/apt.log" 2>&1 || { tail -20 "$cache/apt.log" >&2; exit 1; }; }
source "$root/scripts/venv.sh"

# --- Debian packages -------------------------------------------------------------------------------------------------
lists=("$root/scripts/packages.txt")
[ -z "${1:-}" ] || lists+=("$root/scripts/packages.tests.txt")
[ "${1:-}" != image ] || lists+=("$root/scripts/packages.image.txt")
mapfile -t packages < <(grep -hv '^#' "${lists[@]}" | awk 'NF {print $1}')
[ "${1:-}" != fuzz ] || packages+=(clang-14 libclang-rt-14-dev)
mapfile -t missing < <(comm -23 <(printf '%s\n' "${packages[@]}" | sort) \
  <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | awk '$1 == "installed" {print $2}' | sort -u))
if [ ${#missing[@]} -gt 0 ]; then
  say "installing ${#missing[@]} Debian packages"
  export DEBIAN_FRONTEND=noninteractive
  : >"$cache/apt.log"
  apt_get update
  apt_get install -y --no-install-recommends "${missing[@]}"
fi

# --- LibTorch, from the PyTorch wheel; what the tests take of Python; clang-tidy, as Debian's takes three times as long -----
venv=$cache/venv

# python_packages <list in scripts/> <what to say> [what is left out without them]: installed once for each state of the list.
python_packages() {
  local list=$root/scripts/$1 stamp=$venv/.$1 wanted
  wanted=$(sha256sum "$list" | cut -d' ' -f1)
  [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  say "$2"
  venv_in "$venv"
  if ! "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$list" >"$cache/pip.log" 2>&1; then
    tail -20 "$cache/pip.log" >&2
    [ -n "${3:-}" ] || exit 1
    say "pip does not find scripts/$1: left out is $3"
    return 0
  fi
  echo "$wanted" >"$stamp"
}

# unpacked_packages: those of packages.unpacked.txt, below $cache/unpacked, once for each state of the list.
unpacked_packages() {
  local list=$root/scripts/packages.unpacked.txt stamp=$cache/unpacked/.list wanted work names
  wanted=$(sha256sum "$list" | cut -d' ' -f1)
  [ "$(cat "$stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  mapfile -t names < <(grep -v '^#' "$list" | awk 'NF {print $1}')
  say "unpacking ${#names[@]} Debian packages into $cache/unpacked"
  work=$(mktemp -d "$cache/unpacking.XXXXXX")
  if (cd "$work" && apt-get -q download "${names[@]}" && for file in *.deb; do dpkg -x "$file" root || exit 1; done) >"$cache/unpacked.log" 2>&1; then
    rm -rf "$cache/unpacked"
    mv "$work/root" "$cache/unpacked"
    echo "$wanted" >"$stamp"
  else
    tail -5 "$cache/unpacked.log" >&2
    say "left out are tests of proxies and of alerts: apt-get finds no packages (apt-get update)"
  fi
  rm -rf "$work"
}

# install_torch [tests]: the build that suits this machine, or PARLEY_TORCH=cpu or cuda. One for GPUs serves CPUs too, so it is kept.
install_torch() {
  local stamp=$venv/.torch seen='' torch notice suits
  if command -v nvidia-smi >/dev/null; then seen=$(nvidia-smi 2>&1 || true); fi
  IFS=$'\t' read -r torch notice < <(torch_wheel "$seen" "${PARLEY_TORCH:-}")
  suits=$(torch_wheel "$seen" | cut -f1)
  case $(cat "$stamp" 2>/dev/null || true) in
  "$torch" | "${torch/==/===}" | "$suits") return 0 ;;
  "$torch part") [ -n "${1:-}" ] || return 0 ;;
  esac
  [ -z "$notice" ] || say "$notice"
  say "installing LibTorch (the PyTorch wheel) into $venv; this takes a minute or more"
  venv_in "$venv"
  local pip=("$venv/bin/python" -m pip install -q --disable-pip-version-check) packages=("$torch") part=''
  # PyPI's build is for CUDA; one for CPUs is taken wherever pip is configured to find one. Of CUDA's libraries, LibTorch for CPUs loads two.
  if [[ $torch != *===* ]] && ! "${pip[@]}" "$torch+cpu" >"$cache/pip.log" 2>&1; then
    local size='2.7 GB'
    [ -n "${1:-}" ] || { size='0.5 GB' part=' part' packages=(--no-deps "$torch" "nvidia-cuda-runtime==13.0.*" "nvidia-cuda-cupti==13.0.*"); }
    say "pip finds no build for CPUs alone, so it takes PyPI's: $size to download. PIP_EXTRA_INDEX_URL can name PyTorch's index of builds for CPUs, of 0.2 GB"
  fi
  "${pip[@]}" "${packages[@]}" >"$cache/pip.log" 2>&1 || { tail -20 "$cache/pip.log" >&2; exit 1; }
  if [[ $torch == *===* ]]; then
    # The rest of the headers for CUDA graphs; without them, Parley launches kernel by kernel.
    local cuda
    cuda=$(find "$venv" -path '*/torch/version.py' -exec sed -n "s/^cuda: .*'\([0-9]*\.[0-9]*\)'/\1/p" {} +)
    [ -z "$cuda" ] || "${pip[@]}" "nvidia-cuda-crt==$cuda.*" >>"$cache/pip.log" 2>&1 || say "pip finds no nvidia-cuda-crt $cuda: CUDA graphs are left out"
  fi
  find "$venv" -path '*/torch/version.py' -exec touch {} + # for CMake, which looks at the libraries again
  echo "$torch$part" >"$stamp"
}

source "$root/scripts/torch_wheel.sh"
install_torch "${1:-}"
source "$root/scripts/datachannel.sh"
install_datachannel "$venv" "$cache"
[ -z "${1:-}" ] || python_packages requirements.tests.txt "installing the Python packages of the tests"
[ -z "${1:-}" ] || python_packages requirements.packaging.txt "installing helm, for the test of packaging/helm" "that test"
[ -z "${1:-}" ] || unpacked_packages

# --- CAF with ThreadSanitizer ------------------------------------------------------------------------------------------
# Debian's libcaf is not instrumented: TSan then either drowns in false reports or, with a suppression, hides our own races.
exec 8>&- # others need not wait for what only this preset needs
exec 9>"$cache/.caf-tsan.lock"
[ "${1:-}" != tsan ] || flock 9
if [ "${1:-}" = tsan ] && [ ! -e "$cache/caf-tsan/.installed" ]; then
  say "building CAF with ThreadSanitizer"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # A copy of the machine's own package sources with the source-package lines added, used for this one call.
  if [ -s /etc/apt/sources.list.d/debian.sources ]; then
    list=$work/debian.sources
    sed 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources >"$list"
  else
    list=$work/sources.list
    sed -n 'p; s/^deb /deb-src /p' /etc/apt/sources.list >"$list"
  fi
  mkdir -p "$work/lists/partial"
  apt_opts=(-o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" -o APT::Sandbox::User=root)
  (cd "$work" && apt-get "${apt_opts[@]}" update -q && apt-get "${apt_opts[@]}" source -q --download-only --tar-only actor-framework) >"$cache/caf.log" 2>&1 || { tail -20 "$cache/caf.log" >&2; exit 1; }
  mkdir "$work/src" && tar -xf "$work"/actor-framework_*.orig.tar.* -C "$work/src" --strip-components=1
  # The header uses std::numeric_limits and leaves it to luck that <limits> is there: with g++ 12 it is not.
  sed -i '0,/^#include/s//#include <limits>\n#include/' "$work/src/libcaf_io/caf/io/network/receive_buffer.hpp"
  export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1 # what was compiled once serves the next try, in whatever folder
  cmake -S "$work/src" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_STANDARD=20 \
    -DCMAKE_CXX_FLAGS="-fsanitize=thread -g1 -O1 -w" -DCMAKE_EXE_LINKER_FLAGS=-fsanitize=thread -DCMAKE_SHARED_LINKER_FLAGS=-fsanitize=thread \
    -DCAF_NO_EXAMPLES=yes -DCAF_NO_UNIT_TESTS=yes -DCAF_NO_TOOLS=yes -DCAF_NO_OPENCL=yes -DCAF_NO_PYTHON=yes -DCAF_LOG_LEVEL=QUIET \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_INSTALL_PREFIX="$cache/caf-tsan" -DCMAKE_INSTALL_LIBDIR=lib >>"$cache/caf.log" 2>&1
  nice cmake --build "$work/build" --target install >>"$cache/caf.log" 2>&1 || { tail -20 "$cache/caf.log" >&2; exit 1; }
  touch "$cache/caf-tsan/.installed"
fi
