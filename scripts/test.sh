#!/usr/bin/env bash
# Installs, builds and runs all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DINGOT_TESTS=ON >/dev/null
cmake --build build
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
