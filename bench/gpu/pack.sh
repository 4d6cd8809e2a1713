#!/usr/bin/env bash
# Builds parley and gpu_stages for a machine that has a GPU, Python with PyTorch, but no network and no compiler of ours, and packs what it lacks
# into build/gpu (ignored by Git). That folder and the checkout have to travel there; fails if they are too large (travel.py). Takes 20 CPU minutes at first.
#   bench/gpu/pack.sh               TORCH=2.11.0 and PYTHON=3.12: the versions of PyTorch and Python there
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/build.sh"
version=${TORCH:-2.11.0} python=${PYTHON:-3.12}
abi=cp${python/./}
"$root/scripts/setup.sh" tests
cd "$root"
wheels=$PARLEY_CACHE/torch-$version-$abi

# PyPI's wheel is the CUDA build. === leaves out builds with a local version, which are for CPUs.
if [ ! -e "$wheels/torch/version.py" ]; then
  echo "pack: downloading the wheel of PyTorch $version (0.5 GB, 1.2 GB unpacked, in $wheels)" >&2
  rm -rf "$wheels.part" && mkdir -p "$wheels.part"
  "$PARLEY_CACHE/venv/bin/python" -m pip download -q --no-deps --only-binary :all: --python-version "$python" --platform manylinux_2_28_x86_64 \
    -d "$wheels.part" "torch===$version"
  "$PARLEY_CACHE/venv/bin/python" - "$wheels.part" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
wheel = next(folder.glob("torch-*.whl"))
with zipfile.ZipFile(wheel) as z:
    z.extractall(folder, [n for n in z.namelist() if n.startswith("torch/include/") or n == "torch/version.py" or n.startswith("torch/lib/") and ".so" in n])
wheel.unlink()
PYTHON
  mv "$wheels.part" "$wheels"
fi

# Headers for CUDA graphs, of the toolkit that the wheel was built with.
headers=$wheels/cuda/include
if [ ! -e "$headers/crt/host_defines.h" ]; then
  cuda=$(sed -n "s/^cuda: .*'\([0-9]*\.[0-9]*\)'/\1/p" "$wheels/torch/version.py")
  rm -rf "$wheels/cuda.part" && mkdir -p "$wheels/cuda.part"
  "$PARLEY_CACHE/venv/bin/python" -m pip download -q --no-deps --only-binary :all: --python-version "$python" --platform manylinux2014_x86_64 \
    -d "$wheels/cuda.part" "nvidia-cuda-runtime==$cuda.*" "nvidia-cuda-crt==$cuda.*"
  "$PARLEY_CACHE/venv/bin/python" - "$wheels/cuda.part" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
for wheel in folder.glob("*.whl"):
    with zipfile.ZipFile(wheel) as z:
        for name in z.namelist():
            _, found, below = name.partition("/include/")
            if found and not name.endswith("/"):
                (folder / "include" / below).parent.mkdir(parents=True, exist_ok=True)
                (folder / "include" / below).write_bytes(z.read(name))
    wheel.unlink()
PYTHON
  mkdir -p "$wheels/cuda" && rm -rf "$headers" && mv "$wheels/cuda.part/include" "$headers" && rm -rf "$wheels/cuda.part"
fi

build=build/for-gpu
[ -f $build/build.ninja ] ||
  cmake --preset release -B $build -DTORCH_ROOT="$wheels/torch" -DPARLEY_CUDA_INCLUDE="$headers" -DPARLEY_TESTS=OFF -DCMAKE_SKIP_BUILD_RPATH=ON >"$PARLEY_CACHE/configure.log" 2>&1 ||
  { cat "$PARLEY_CACHE/configure.log" >&2; exit 1; }
cmake --build $build -j "${JOBS:-$(nproc)}" --target parley --target gpu_stages >&2

# What every Linux has, or PyTorch brings, stays here.
common='(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libgomp|libutil|libtorch[^/]*|libc10[^/]*|libcud[^/]*|libcupti)\.so'
packed=$(mktemp -d)
trap 'rm -rf "$packed"' EXIT
mkdir -p "$packed/lib" build/gpu
for program in parley gpu_stages; do
  strip -o "$packed/$program" $build/$program
  LD_LIBRARY_PATH=$wheels/torch/lib ldd $build/$program | awk '$3 ~ /^\// {print $3}' | grep -vE "/$common" || true
done | sort -u | xargs -r cp -L -t "$packed/lib"
strip --strip-unneeded "$packed"/lib/*
echo "$(git describe --always --dirty), PyTorch $(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$wheels/torch/version.py")" >"$packed/version"
rm -rf build/gpu/*
tar -C "$packed" -cf - . | xz -9e >build/gpu/programs.tar.xz
echo "pack: $(du -sm "$packed" | cut -f1) MiB, packed $(du -sm build/gpu | cut -f1)" >&2
cat <<EOF
Take there: this checkout, and of what Git ignores
  build/gpu
Start there, in the checkout (results go to \$OUT, else to build/gpu/out); bench/gpu/run.sh --dry prints the plan:
  bash bench/gpu/first.sh
  bash bench/gpu/second.sh
EOF
"$PARLEY_CACHE/venv/bin/python" bench/gpu/travel.py
