#!/usr/bin/env bash
# Installs the build given as $1 into an empty folder and builds and runs a user's project against it.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >/dev/null
# A static object of a function is half made for ever in a child, if a fork meets its making: base/first_use.h instead.
symbols="$(nm -C "$(find "$work/prefix" -name 'libingot.so')")"
grep -q ' b ingot::' <<<"$symbols"  # they are there to be looked at
if grep 'guard variable for ingot::' <<<"$symbols"; then exit 1; fi
cmake -S "$here/project" -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build" >/dev/null
"$work/build/uses_ingot"

# The library is opened while a program runs: by itself, through a plugin, before and after a library that takes all the
# static thread-local storage there is; from C and from Python. No tunables.
unset GLIBC_TUNABLES
library="$(find "$work/prefix" -name 'libingot.so')"
plugin="$work/build/libplugin.so" greedy="$work/build/libgreedy.so"
for order in "$library" "$plugin" "$library $plugin" "$greedy $library $plugin" "$plugin $greedy" "$plugin $greedy $library"; do
  # shellcheck disable=SC2086
  "$work/build/host" $order
  # shellcheck disable=SC2086
  python3 "$here/project/host.py" $order
done
echo "opened by dlopen in six orders, from C and from Python"

# Ends of the process and of threads, and children, with the shared library; the last destructor says "whole".
for case in exit handlers threads background background-thread detached inside fork fork-busy fork-twice; do
  timeout 120 "$work/build/process" "$case" >"$work/output"
  grep -q whole "$work/output"
done

cmake -S "$here/../../examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/examples" --parallel 2 >/dev/null
ctest --test-dir "$work/examples" --output-on-failure
"$work/prefix/bin/ingot" --version
