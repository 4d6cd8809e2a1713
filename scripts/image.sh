#!/usr/bin/env bash
# Builds the image of packaging/Dockerfile with buildah and talks to it with tests/e2e/test_image.py: alone, and as the gateway and the worker of
# packaging/compose.yaml, by podman and podman-compose. Part of ./test --long. Takes root and 10 GB.
#   scripts/image.sh            LibTorch's build for CPUs, if pip is configured to find one
#   scripts/image.sh cuda       the CUDA build, on the CPU: another 20 GB
# No registry of images is asked: debian:12 is made by debootstrap from the machine's own package source. Everything lies in one folder and runs in
# namespaces that end with the script: no process, mount, bridge or image is left. IMAGE_FOLDER=DIR keeps images and their layers in DIR
# for the next time. What ccache has of this machine's own builds is used, and added to.
source "$(dirname "${BASH_SOURCE[0]}")/build.sh"
torch=${1:-}
case $torch in '' | cuda) ;; *) echo "image: '$torch' is neither empty nor cuda" >&2; exit 2 ;; esac
"$root/scripts/setup.sh" image
prepare release parley
[ "$(id -u)" = 0 ] || exec sudo PARLEY_CACHE="$PARLEY_CACHE" IMAGE_FOLDER="${IMAGE_FOLDER:-}" "$root/scripts/image.sh" "$@"
cd "$root"

if [ -n "${IMAGE_FOLDER:-}" ]; then
  folder=$(mkdir -p "$IMAGE_FOLDER" && cd "$IMAGE_FOLDER" && pwd)
else
  folder=$(mktemp -d "${TMPDIR:-/tmp}/parley-image.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
fi
rm -rf "$folder/run" "$folder/networks"
mkdir -p "$folder/run" "$folder/networks" /run/containers /run/netns /run/runc
export TMPDIR=$folder CONTAINERS_CONF=$folder/containers.conf CONTAINERS_STORAGE_CONF=$folder/storage.conf torch
export DISABLE_HC_SYSTEMD=true # health checks are for those who have systemd
cat >"$CONTAINERS_STORAGE_CONF" <<EOF
[storage]
driver = "overlay"
graphroot = "$folder/storage"
runroot = "$folder/run"
EOF
# Podman would raise the limits beyond what this process may have.
files=$(ulimit -Hn) tasks=$(ulimit -Hu)
[ "$files" != unlimited ] && [ "$files" -lt 65536 ] || files=65536
[ "$tasks" != unlimited ] && [ "$tasks" -lt 65536 ] || tasks=65536
cat >"$CONTAINERS_CONF" <<EOF
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$tasks:$tasks"]
[network]
network_backend = "netavark"
network_config_dir = "$folder/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
static_dir = "$folder/storage/libpod"
tmp_dir = "$folder/run/libpod"
volume_path = "$folder/storage/volumes"
EOF

# machine_options: how the machine reaches its packages, for the build: pip's settings, and the folders and certificates that they name.
machine_options() {
  local line word
  : >"$folder/pip.list"
  echo "[global]" >"$folder/pip.conf"
  while IFS= read -r line; do
    case $line in
    "cert = "*)
      printf '%s\n' "--volume=${line#cert = }:/mnt/certificates.pem:ro" >>"$folder/pip.list"
      line="cert = /mnt/certificates.pem"
      ;;
    esac
    echo "$line" >>"$folder/pip.conf"
    for word in ${line#*= }; do
      word=${word#file://}
      [[ $word != /mnt/* && -d $word ]] && word=$(cut -d/ -f1-3 <<<"$word") && echo "--volume=$word:$word:ro" >>"$folder/pip.list"
    done
  done < <("$PARLEY_CACHE/venv/bin/python" -m pip config list | sed -nE "s/^(:env:|global|install)\.([a-z-]+)='(.*)'\$/\2 = \3/p" | awk '!seen[$1]++')
  echo "--volume=$folder/pip.conf:/etc/pip.conf:ro" >>"$folder/pip.list"
  sort -u "$folder/pip.list"
  local compiled
  compiled=$(ccache -k cache_dir)
  mkdir -p "$compiled"
  echo "--volume=$compiled:/root/.cache/ccache"
}

build() {
  if ! podman image exists debian:12; then
    local container place mirror
    container=$(buildah from scratch)
    place=$(buildah mount "$container")
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' | awk '$1 == "bookworm" {print $2; exit}')
    debootstrap --variant=minbase bookworm "$place" "$mirror" >"$folder/debootstrap.log" 2>&1 || { tail -20 "$folder/debootstrap.log" >&2; return 1; }
    if [ -s /etc/apt/sources.list.d/debian.sources ]; then
      rm "$place/etc/apt/sources.list"
      cp /etc/apt/sources.list.d/debian.sources "$place/etc/apt/sources.list.d/"
    else
      cp /etc/apt/sources.list "$place/etc/apt/"
    fi
    apt-config dump | { grep -iE '^Acquire::([a-z:]*proxy|check-|retries)' || true; } >"$place/etc/apt/apt.conf.d/99machine"
    rm -rf "$place"/var/cache/apt/archives/*.deb "$place"/var/lib/apt/lists/*
    buildah umount "$container" >/dev/null
    buildah config --cmd bash "$container"
    buildah commit -q --rm "$container" docker.io/library/debian:12 >/dev/null
  fi
  mapfile -t options < <(machine_options)
  buildah bud --isolation oci --runtime runc --network host --pull-never --layers "${options[@]}" ${torch:+--build-arg "TORCH=$torch"} \
    -f packaging/Dockerfile -t "parley${torch:+:$torch}" . >"$folder/build.log" 2>&1 || { tail -40 "$folder/build.log" >&2; return 1; }
  podman images --noheading --format '{{.Repository}}:{{.Tag}} {{.Size}}' --filter reference=parley | sed 's/^/image: /'
}

talk() {
  ip link set lo up
  podman rm --all --force >/dev/null
  podman volume prune --force >/dev/null
  PARLEY_IMAGE=parley${torch:+:$torch} PARLEY_BINARY=$root/build/release/parley PYTHONDONTWRITEBYTECODE=1 \
    "$PARLEY_CACHE/venv/bin/python" -m pytest -q -p no:cacheprovider tests/e2e/test_image.py
}

export root folder
export -f build talk machine_options
apart=(unshare --mount --pid --fork --mount-proc --kill-child)
hide='for place in containers netns runc; do mount -t tmpfs none /run/$place; done' # where these tools keep what they run
"${apart[@]}" bash -euo pipefail -c "$hide; build" </dev/null
"${apart[@]}" --net bash -euo pipefail -c "$hide; talk" </dev/null
find /sys/fs/cgroup -depth -type d \( -path '*/libpod_parent*' -o -path '*/buildah-buildah*' \) -exec rmdir {} + 2>/dev/null || true # those that nobody uses
