#!/usr/bin/env bash
# Installs what the build needs from Debian's or Ubuntu's packages (root or sudo), unless it is all there.
set -euo pipefail
packages=(g++ cmake ninja-build libxbyak-dev libzydis-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libpcre2-dev
          libgtest-dev librapidcheck-dev libmpfr-dev xz-utils python3 "$@")
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  sudo=""
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  echo "installing: ${missing[*]}"
  $sudo apt-get update -qq
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
