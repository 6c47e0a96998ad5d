#!/usr/bin/env bash
# Installs, builds Release, and runs three real models on real data and trains one, eager and compiled side by side.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build build --target ingot_command
exec build/ingot demo --data examples/data "$@"
