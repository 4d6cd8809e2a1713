#!/usr/bin/env bash
# packaging/licenses.sh BUILD FOLDER: puts the licences of all that BUILD's program is made of, LibTorch and the system's C and C++ libraries aside, into FOLDER: Parley's own, one file for
# each Debian package whose libraries it loads or whose headers are compiled into it, and a list of these packages with their versions, by which Debian keeps their sources.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$1 folder=$2
mkdir -p "$folder"
cp "$root/LICENSE" "$folder/LICENSE"
cp "$root/protocol/speech/silero/LICENSE" "$folder/silero-vad.txt"
datachannel=$(sed -n 's/^DataChannel_INCLUDE_DIR:[A-Z]*=//p' "$build/CMakeCache.txt")
[ ! -d "$datachannel/../licenses" ] || cp "$datachannel"/../licenses/*.txt "$folder/"
headers=(libboost1.81-dev libcli11-dev libexpected-dev nlohmann-json3-dev)
packages=("${headers[@]}")
while read -r library; do
  # Debian's lists may still name /lib for what lies in /usr/lib.
  owner=$({ dpkg -S "$library" || dpkg -S "${library#/usr}"; } 2>/dev/null | head -1 | cut -d: -f1)
  case $owner in
  libc6 | libgcc-s1 | libstdc++6 | libgomp1 | zlib1g) ;; # of the system, or of LibTorch
  '') echo "licenses: no package has $library" >&2; exit 1 ;;
  *) packages+=("$owner") ;;
  esac
done < <(ldd "$build/parley" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | xargs realpath | grep -v '/torch/lib/')
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
{
  echo "Libraries in this package, or compiled into it, as Debian built them. Their sources: https://snapshot.debian.org/package/SOURCE/VERSION/"
  echo
  dpkg-query -W -f='${binary:Package}\t${source:Package}\t${source:Version}\n' "${packages[@]}" | column -t -N PACKAGE,SOURCE,VERSION -s $'\t'
} >"$folder/THIRD_PARTY.txt"
for package in "${packages[@]}"; do cp -L "/usr/share/doc/$package/copyright" "$folder/$package.txt"; done
