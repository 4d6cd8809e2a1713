#!/usr/bin/env bash
# Installs the wheel on fresh systems, as a newcomer does, and talks to it: Debian 12 and 13 by debootstrap, with nothing but Python's venv in them. Part of ./test --long.
# Takes root and 10 GB.
#   scripts/wheel_systems.sh [suite…]      bookworm and trixie
# pip is configured as on this machine; where it finds no build of torch for CPUs it takes PyPI's for CUDA, 2.7 GB. Prints what each step took.
# SYSTEMS_FOLDER=DIR keeps the bare systems in DIR for the next time.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
[ $# -gt 0 ] || set -- bookworm trixie
command -v debootstrap >/dev/null || "$root/scripts/setup.sh" image
prepare release parley
[ "$(id -u)" = 0 ] || exec sudo PARLEY_CACHE="$PARLEY_CACHE" SYSTEMS_FOLDER="${SYSTEMS_FOLDER:-}" "$root/scripts/wheel_systems.sh" "$@"
cd "$root"
folder=$(mktemp -d "${TMPDIR:-/tmp}/parley-systems.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
kept=${SYSTEMS_FOLDER:-$folder}
mkdir -p "$kept"
wheel=$(packaging/wheel/build.sh "$folder/wheel")
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "bookworm" {print $2; exit}')

# try_system <suite>: in namespaces of its own, which end with it.
try_system() {
  local suite=$1 place=$folder/$1 begin line word
  mkdir "$place"
  mount -t overlay overlay -o "lowerdir=$kept/$suite.root,upperdir=$folder/$suite.changes,workdir=$folder/$suite.work" "$place"
  mount --bind /proc "$place/proc"
  mount --bind /dev "$place/dev"
  cp -L /etc/resolv.conf "$place/etc/resolv.conf"
  # How this machine reaches its packages: pip's settings, and the folders and certificates that they name.
  echo "[global]" >"$place/etc/pip.conf"
  "$PARLEY_CACHE/venv/bin/python" -m pip config list | sed -nE "s/^(:env:|global|install)\.([a-z-]+)='(.*)'\$/\2 = \3/p" | awk '!seen[$1]++' >>"$place/etc/pip.conf"
  while IFS= read -r line; do
    for word in ${line#*= }; do
      word=${word#file://}
      if [ -d "$word" ]; then
        word=$(cut -d/ -f1-3 <<<"$word") # an index names files beside it
        mkdir -p "$place$word"
        mountpoint -q "$place$word" || mount --bind "$word" "$place$word"
      elif [ -f "$word" ]; then
        mkdir -p "$place$(dirname "$word")"
        cp -L "$word" "$place$word"
      fi
    done
  done <"$place/etc/pip.conf"
  cp "$wheel" "$place/tmp/"
  local inside=(chroot "$place" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
  begin=$(date +%s)
  "${inside[@]}" python3 -m venv /opt/venv
  "${inside[@]}" /opt/venv/bin/pip install --no-cache-dir --progress-bar off --disable-pip-version-check "/tmp/$(basename "$wheel")" >"$folder/pip.log" 2>&1 || { tail -20 "$folder/pip.log" >&2; return 1; }
  echo "systems: $suite: pip install took $(($(date +%s) - begin)) s, $("${inside[@]}" /opt/venv/bin/pip list 2>/dev/null | awk '$1 == "torch" {print "torch " $2}'), \
$(sed -nE 's/.*Downloading .* \(([0-9.]+ [kMG]B)\)$/\1/p' "$folder/pip.log" | awk '$2 == "GB" {n += $1 * 1000} $2 == "MB" {n += $1} $2 == "kB" {n += $1 / 1000} END {printf "%d MB downloaded", n}'), \
$(du -sm "$place/opt/venv" | cut -f1) MB on disk"
  PARLEY_SYSTEM=$place PARLEY_BINARY=$root/build/release/parley PYTHONDONTWRITEBYTECODE=1 \
    "$PARLEY_CACHE/venv/bin/python" -m pytest -q -p no:cacheprovider tests/e2e/test_wheel_system.py
}

export root folder kept wheel
export -f try_system
for suite; do
  if [ ! -e "$kept/$suite.root/.made" ]; then
    rm -rf "$kept/$suite.root"
    debootstrap --variant=minbase --include=ca-certificates,python3-venv "$suite" "$kept/$suite.root" "$mirror" >"$folder/debootstrap.log" 2>&1 || { tail -20 "$folder/debootstrap.log" >&2; exit 1; }
    touch "$kept/$suite.root/.made"
  fi
  mkdir "$folder/$suite.changes" "$folder/$suite.work"
  unshare --mount --pid --fork --mount-proc --kill-child bash -euo pipefail -c "try_system $suite" </dev/null
  rm -rf "$folder/$suite.changes" "$folder/$suite.work"
done
