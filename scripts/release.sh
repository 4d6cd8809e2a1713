#!/usr/bin/env bash
# scripts/release.sh [FOLDER]: makes in FOLDER (build/release-VERSION) what a release of the commit at hand consists of:
#   parley_server-….whl              the wheel
#   parley-VERSION.tar.gz            the sources, with the commit's name in them
#   parley_server-….cdx.json         the bill of materials of the wheel, CycloneDX, by auditwheel
#   parley-VERSION-licenses.tar.gz   the licences of all that is in the wheel
#   NOTES.md                         what the changelog says of this version
#   SHA256SUMS                       of all of these
# Equal commits give equal files, built in the same folder of the same system. The image is made by scripts/image.sh.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
version=$(cat "$root/VERSION")
out=${1:-$root/build/release-$version}
cd "$root"
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "release: there are changes that are not committed: a release is a commit" >&2
  exit 1
fi
commit=$(git rev-parse --short=12 HEAD)
export SOURCE_DATE_EPOCH TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
prepare release parley
work=$(mktemp -d "${TMPDIR:-/tmp}/parley-release.XXXXXX")
trap 'rm -rf "$work"' EXIT

wheel=$(packaging/wheel/build.sh "$work/out")
git archive --format=tar --prefix="parley-$version/" --add-virtual-file="parley-$version/COMMIT:$commit" HEAD | gzip -n >"$work/out/parley-$version.tar.gz"
mkdir "$work/wheel" "$work/licenses"
"$PARLEY_CACHE/venv/bin/python" -m zipfile -e "$wheel" "$work/wheel"
cp "$work"/wheel/*.dist-info/sboms/auditwheel.cdx.json "$work/out/$(basename "$wheel" .whl).cdx.json"
cp -r "$work"/wheel/*.dist-info/licenses/licenses "$work/licenses/parley-$version-licenses"
tar -C "$work/licenses" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -cf - "parley-$version-licenses" | gzip -n >"$work/out/parley-$version-licenses.tar.gz"

# notes_of <version>: the changelog's section, without its heading.
notes_of() { awk -v heading="## [$1]" 'index($0, heading) == 1 {inside = 1; next} /^## / {inside = 0} inside' CHANGELOG.md; }
notes=$(notes_of "$version")
{
  echo "# Parley $version"
  echo
  echo "Commit $commit."
  echo "${notes:-$(notes_of Unreleased)}"
} >"$work/out/NOTES.md"
(cd "$work/out" && sha256sum -- * | tee SHA256SUMS)
mkdir -p "$out"
rm -f "$out"/*.whl
cp "$work"/out/* "$out/"
