#!/usr/bin/env bash
# Installs the Debian package on a fresh Debian 12 by apt, asks lintian, and talks to the program there; then removes it. Part of ./test --long. Takes root and 3 GB.
# SYSTEMS_FOLDER=DIR keeps the bare system in DIR for the next time.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
command -v debootstrap >/dev/null || "$root/scripts/setup.sh" image
prepare release parley
[ "$(id -u)" = 0 ] || exec sudo PARLEY_CACHE="$PARLEY_CACHE" SYSTEMS_FOLDER="${SYSTEMS_FOLDER:-}" "$root/scripts/deb_system.sh" "$@"
cd "$root"
folder=$(mktemp -d "${TMPDIR:-/tmp}/parley-debian.XXXXXX")
trap 'rm -rf --one-file-system "$folder"' EXIT
kept=${SYSTEMS_FOLDER:-$folder}
mkdir -p "$kept"
begin=$(date +%s)
package=$(packaging/deb/build.sh "$folder/deb")
echo "debian: made in $(($(date +%s) - begin)) s, $(stat -c %s "$package") bytes"
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "bookworm" {print $2; exit}')

# try_package: in namespaces of its own, which end with it.
try_package() {
  local place=$folder/place
  mkdir "$place"
  mount -t overlay overlay -o "lowerdir=$kept/debian.root,upperdir=$folder/changes,workdir=$folder/work" "$place"
  mount --bind /proc "$place/proc"
  mount --bind /dev "$place/dev"
  cp -L /etc/resolv.conf "$place/etc/resolv.conf"
  cp -r /etc/apt/apt.conf.d/. "$place/etc/apt/apt.conf.d/"
  cp "$package" "$place/tmp/parley-server.deb"
  local inside=(chroot "$place" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive)
  "${inside[@]}" apt-get update -qq
  begin=$(date +%s)
  "${inside[@]}" apt-get install -qq -y --no-install-recommends /tmp/parley-server.deb >"$folder/apt.log" 2>&1 || { tail -20 "$folder/apt.log" >&2; return 1; }
  echo "debian: apt install took $(($(date +%s) - begin)) s"
  "${inside[@]}" parley --version
  "${inside[@]}" parley serve --config /etc/parley/parley.toml --port 0 >"$folder/serve.out" 2>"$folder/serve.log" </dev/null &
  local server=$! url
  url=$(timeout 120 sh -c "until grep -m1 '^ready ' '$folder/serve.out'; do sleep 0.1; done" | cut -d' ' -f2)
  "${inside[@]}" parley probe chat "hello" --max-new-tokens 4 --url "$url"
  kill -TERM "$server"
  wait "$server"
  "${inside[@]}" apt-get install -qq -y --no-install-recommends lintian >"$folder/apt.log" 2>&1 || { tail -20 "$folder/apt.log" >&2; return 1; }
  # The maintainer is whoever makes the package for others; the rest is about LibTorch, as PyTorch built it.
  "${inside[@]}" lintian --allow-root --fail-on error --tag-display-limit 3 /tmp/parley-server.deb --suppress-tags \
    bogus-mail-host,bogus-mail-host-in-debian-changelog,embedded-library,unstripped-binary-or-object,custom-library-search-path,library-not-linked-against-libc
  "${inside[@]}" apt-get purge -qq -y parley-server >"$folder/apt.log" 2>&1 || { tail -20 "$folder/apt.log" >&2; return 1; }
  [ ! -e "$place/usr/bin/parley" ] && [ ! -e "$place/etc/parley" ] || { echo "debian: something stays behind" >&2; return 1; }
  echo "debian: installed, asked, judged and removed"
}

export root folder kept package
export -f try_package
if [ ! -e "$kept/debian.root/.made" ]; then
  rm -rf "$kept/debian.root"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$kept/debian.root" "$mirror" >"$folder/debootstrap.log" 2>&1 || { tail -20 "$folder/debootstrap.log" >&2; exit 1; }
  touch "$kept/debian.root/.made"
fi
mkdir "$folder/changes" "$folder/work"
unshare --mount --pid --fork --mount-proc --kill-child bash -euo pipefail -c try_package </dev/null
