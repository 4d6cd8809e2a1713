#!/usr/bin/env bash
# packaging/deb/build.sh [FOLDER]: makes parley-server_VERSION_ARCHITECTURE.deb in FOLDER (build/deb) from the program of build/release, which is built first if it is not
# there, or of PARLEY_BUILD. It holds what `cmake --install` installs: the program, LibTorch beside it, as no Debian package has one that fits, the default model, settings,
# units, the manual and completions. Of everything else Debian's own packages are asked for. Equal inputs give equal bytes.
# PARLEY_DEB_COMPRESSION=xz (none: large, and made in a moment).
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/build.sh"
out=${1:-$root/build/deb}
build=${PARLEY_BUILD:-$root/build/release}
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 315532800)}
[ -x "$build/parley" ] || prepare release parley
version=$(cat "$root/VERSION")
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-Parley} <${DEBEMAIL:-parley@localhost}>" # whoever makes a package for others names themselves
work=$(mktemp -d "${TMPDIR:-/tmp}/parley-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
tree=$work/tree
DESTDIR=$tree cmake --install "$build" --prefix /usr --strip >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
chmod -R u=rwX,go=rX "$tree"
find "$tree/usr/lib/parley" -type f -exec chmod 644 {} +

# Settings belong into /etc: --prefix /usr puts them, and what names them, into /usr/etc.
mv "$tree/usr/etc" "$tree/etc"
sed -i 's|/usr/etc/parley|/etc/parley|g' "$tree"/usr/lib/systemd/system/*.service "$tree/usr/share/man/man1/parley.1"
gzip -9n "$tree/usr/share/man/man1/parley.1"

about=$tree/usr/share/doc/parley-server
mv "$tree/usr/share/doc/parley" "$about"
rm "$about/LICENSE" # in `copyright`
gzip -9n <"$root/CHANGELOG.md" >"$about/CHANGELOG.md.gz"
torch=$(sed -n 's/^TORCH_ROOT:[A-Z]*=//p' "$build/CMakeCache.txt")
{
  echo "parley-server ($version) unstable; urgency=medium"
  printf '\n  * See CHANGELOG.md.gz.\n\n'
  echo " -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$about/changelog.gz"
{
  echo "Parley is licensed under the Apache License, version 2.0: see /usr/share/common-licenses/Apache-2.0."
  printf '\nThe voice detector of protocol/speech/silero\n\n'
  cat "$root/protocol/speech/silero/LICENSE"
  printf '\nLibTorch, in /usr/lib/parley, as the Python package torch brings it\n\n'
  find "$torch/.." -maxdepth 3 -path '*/torch-*.dist-info/*' -name LICENSE -exec cat {} + | grep . || { echo "deb: torch has no licence" >&2; exit 1; }
} >"$about/copyright"

# Which of Debian's packages the program is linked with.
mkdir -p "$work/debian"
echo "Source: parley-server" >"$work/debian/control"
needs=$(cd "$work" && dpkg-shlibdeps -O --ignore-missing-info -l"$tree/usr/lib/parley" "$tree/usr/bin/parley" 2>"$work/log" | sed -n 's/^shlibs:Depends=//p') || { cat "$work/log" >&2; exit 1; }

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<EOF
Package: parley-server
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -k -s --exclude=DEBIAN "$tree" | cut -f1)
Depends: $needs
Section: net
Priority: optional
Description: server for spoken conversations with MiniCPM-o
 People talk to it and show it things; the model listens each second and
 decides by itself to keep listening or to speak, in text and speech. One
 WebSocket endpoint serves text chat, audio and video in full duplex, and
 OpenAI's Realtime and Live APIs to unchanged clients.
 .
 With a small model to try it: systemctl start parley, http://127.0.0.1:8006.
EOF
(cd "$tree" && find etc -type f -printf '/%p\n' | sort) >"$tree/DEBIAN/conffiles"
(cd "$tree" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
# Nothing is started by itself: whoever installs it decides which of the units.
cat >"$tree/DEBIAN/postinst" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
  deb-systemd-invoke try-restart parley.service parley-gateway.service parley-worker.service || true
fi
EOF
cat >"$tree/DEBIAN/prerm" <<'EOF'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop parley.service parley-gateway.service parley-worker.service || true
fi
EOF
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm"

mkdir -p "$out"
package=$out/parley-server_${version}_$architecture.deb
dpkg-deb --root-owner-group -Z"${PARLEY_DEB_COMPRESSION:-xz}" --build "$tree" "$package" >/dev/null
printf 'deb: %s, %s bytes\n' "$(basename "$package")" "$(stat -c %s "$package")" >&2
echo "$package"
