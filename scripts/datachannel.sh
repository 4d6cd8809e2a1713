# install_datachannel <venv> <cache>: builds libdatachannel, which carries calls over WebRTC, as a static library below <cache>/datachannel, once for each state of
# scripts/requirements.webrtc.txt. Where that fails, CMake leaves WebRTC out; why is in <cache>/datachannel.log.
install_datachannel() {
  local root list venv=$1 cache=$2 wanted work source sets
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  list=$root/scripts/requirements.webrtc.txt
  wanted=$(cat "$list" "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1)
  [ "$(cat "$cache/datachannel/.stamp" 2>/dev/null || true)" != "$wanted" ] || return 0
  work=$(mktemp -d "$cache/datachannel.XXXXXX")
  ( # not in the condition of an `if`, where errors would not end it
    set -e
    "$venv/bin/python" -m pip download -q --disable-pip-version-check --no-dependencies --ignore-requires-python --no-binary aiolibdatachannel --require-hashes -r "$list" -d "$work"
    cd "$work"
    ls ./*.tar.gz
    tar -xzf ./*.tar.gz --strip-components=1
    source=vendor/libdatachannel
    sets=(-DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG" "-DCMAKE_C_FLAGS_RELEASE=-O2 -DNDEBUG" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF
      -DNO_WEBSOCKET=ON -DNO_EXAMPLES=ON -DNO_TESTS=ON -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_PREFIX=$work/made")
    if command -v ccache >/dev/null; then
      export CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
      sets+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
    fi
    cmake -S "$source" -B build -G Ninja "${sets[@]}"
    nice cmake --build build --target install
    mkdir made/licenses
    cp "$source/LICENSE" made/licenses/libdatachannel.txt
    for part in libjuice libsrtp plog; do cp "$source/deps/$part/LICENSE" "made/licenses/$part.txt"; done
    cp "$source/deps/usrsctp/LICENSE.md" made/licenses/usrsctp.txt
    echo "$wanted" >made/.stamp
  ) >"$cache/datachannel.log" 2>&1 &
  if wait $!; then
    rm -rf "$cache/datachannel"
    mv "$work/made" "$cache/datachannel"
  fi
  rm -rf "$work"
}
