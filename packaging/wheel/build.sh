#!/usr/bin/env bash
# packaging/wheel/build.sh [FOLDER]: makes the wheel of parley-server in FOLDER (build/wheel)
# from the program of build/release, which is built first if it is not there, or of PARLEY_BUILD.
# It holds the Python package of python/, the program and the libraries that it is linked with, the default model, a sample and the settings. LibTorch is the package
# torch of the version that the program was built with: the wheel asks for it, and the program finds it beside the package by its RPATH. Which systems it fits is what
# auditwheel finds in its symbols. Equal inputs give equal bytes.
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/build.sh"
out=${1:-$root/build/wheel}
build=${PARLEY_BUILD:-$root/build/release}
cache=$PARLEY_CACHE
venv=$cache/wheel
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 315532800)}
[ -x "$build/parley" ] || prepare release parley
say() { printf 'wheel: %s\n' "$*" >&2; }

# --- The tools ------------------------------------------------------------------------------------------------------------
wanted=$(sha256sum <"$root/scripts/requirements.wheel.txt")
if [ "$(cat "$venv/.stamp" 2>/dev/null || true)" != "$wanted" ]; then
  mkdir -p "$cache"
  exec 9>"$cache/.wheel.lock"
  flock 9
  source "$root/scripts/venv.sh"
  say "installing its tools into $venv"
  venv_in "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$root/scripts/requirements.wheel.txt" >"$cache/pip.log" 2>&1 || { tail -20 "$cache/pip.log" >&2; exit 1; }
  echo "$wanted" >"$venv/.stamp"
  exec 9>&-
fi
PATH=$venv/bin:$PATH

# --- What goes in -----------------------------------------------------------------------------------------------------------
torch=$(sed -n 's/^TORCH_ROOT:[A-Z]*=//p' "$build/CMakeCache.txt")
built_with=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$torch/version.py")
work=$(mktemp -d "${TMPDIR:-/tmp}/parley-wheel.XXXXXX")
trap 'rm -rf "$work"' EXIT
stage=$work/stage
mkdir -p "$stage/parley/bin" "$stage/parley/share/parley/models" "$stage/licenses" "$out"
cp "$root"/python/parley/*.py "$root/python/parley/py.typed" "$stage/parley/"
strip -o "$stage/parley/bin/parley" "$build/parley"
patchelf --force-rpath --set-rpath '$ORIGIN/../../torch/lib' "$stage/parley/bin/parley"
cp -r "$root/models/nano" "$stage/parley/share/parley/models/"
cp "$root/config/parley.toml" "$root/tests/data/question.wav" "$stage/parley/share/parley/"
cp "$root/python/README.md" "$root/packaging/wheel/tag.py" "$stage/"
sed "s/@VERSION@/$(cat "$root/VERSION")/; s/@TORCH@/$built_with/" "$root/packaging/wheel/pyproject.toml.in" >"$stage/pyproject.toml"
"$root/packaging/licenses.sh" "$build" "$stage/licenses"
find "$stage" -type d -exec chmod 755 {} + -o -type f -perm /100 -exec chmod 755 {} + -o -type f -exec chmod 644 {} +

# --- The wheel ------------------------------------------------------------------------------------------------------------
(cd "$stage" && python -m hatchling build -t wheel -d "$work/plain") >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
# OpenMP comes with LibTorch, too: a second runtime in one process would fight for the cores with the first.
LD_LIBRARY_PATH=$torch/lib auditwheel repair --exclude libtorch_cpu.so --exclude libtorch_cuda.so --exclude libc10.so --exclude libc10_cuda.so --exclude 'libgomp*' \
  -w "$work/repaired" "$work"/plain/*.whl >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
wheel=("$work"/repaired/*.whl)
mv "${wheel[0]}" "$out/"
say "$(basename "${wheel[0]}"), $(stat -c %s "$out/$(basename "${wheel[0]}")") bytes, for torch $built_with"
echo "$out/$(basename "${wheel[0]}")"
