#!/usr/bin/env bash
# Installs, builds and runs all tests. INGOT_WARNINGS_ARE_ERRORS=ON, as .ci/run has it: a warning ends the build.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DINGOT_TESTS=ON \
  -DCMAKE_COMPILE_WARNING_AS_ERROR="${INGOT_WARNINGS_ARE_ERRORS:-OFF}" >/dev/null
cmake --build build
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
