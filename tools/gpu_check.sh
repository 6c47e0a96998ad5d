#!/usr/bin/env bash
# What a machine with a GPU is asked: do the CUDA kernels give their results on the device, and how fast are they?
#   tools/gpu_check.sh --pack [FOLDER] [BUILD]   on the build machine: programs and their libraries into FOLDER (gpu/)
#   tools/gpu_check.sh [FOLDER]                  on the machine with the GPU, from the same tree; no compiler needed
# Logs and JSON go to $OUT, else to gpu-results/. All parts are run; the status is 1 if one of them failed. NVRTC is the
# machine's own (CUDA's folder, the loader's, or that of a Python package); PyTorch is measured if Python has it ($PYTHON),
# for at most PEERS_SECONDS (300). PARTS="driver kernels bench peers": some of them.
set -uo pipefail
cd "$(dirname "$0")/.."
programs=(tests/test_codegen tests/test_runtime ingot)

pack() {
  set -e
  local folder=${1:-gpu} build=${2:-build} program library bytes
  rm -rf "$folder"
  mkdir -p "$folder/bin" "$folder/lib"
  for program in "${programs[@]}"; do
    local name=${program##*/}
    strip -o "$folder/bin/$name" "$build/$program"
    # What every Linux has stays the machine's own: the C library, and the driver's.
    ldd "$build/$program" | awk '$3 ~ /^\// { print $3 }' |
      grep -Ev '/(libc|libm|libdl|librt|libpthread|libcuda)\.so' | while read -r library; do
        cp -L "$library" "$folder/lib/"
      done
    cat > "$folder/$name" <<'PROGRAM'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${INGOT_NVRTC_FOLDER:+:$INGOT_NVRTC_FOLDER}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$here/bin/$(basename "$0")" "$@"
PROGRAM
    chmod +x "$folder/$name"
  done
  strip --strip-unneeded "$folder"/lib/*
  bytes=$(du -sb "$folder" | cut -f1)
  echo "$folder: $((bytes / 1000)) kB"
  if ((bytes > 40000000)); then
    echo "more than 40 MB" >&2
    exit 1
  fi
}

# The folder of NVRTC, where the loader does not find it by itself.
find_nvrtc() {
  local packages
  ldconfig -p 2> /dev/null | grep -q 'libnvrtc\.so\.1[23]' && return
  packages=$("${python:-python3}" -c 'import site, sys; print(*site.getsitepackages(), *sys.path)' 2> /dev/null)
  # shellcheck disable=SC2086
  find -L /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/lib/x86_64-linux-gnu /opt/cuda*/lib64 $packages \
    -maxdepth 4 -name 'libnvrtc.so.1[23]' -not -path '*/stubs/*' 2> /dev/null | sort -r | head -1 | xargs -r dirname
}

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python /opt/conda/bin/python3 /opt/venv/bin/python3; do
    if "$candidate" -c 'import torch' 2> /dev/null; then
      echo "$candidate"
      return
    fi
  done
}

if [[ ${1:-} == --pack ]]; then
  pack "${2:-}" "${3:-}"
  exit
fi

folder=${1:-gpu}
out=${OUT:-gpu-results}
peers_seconds=${PEERS_SECONDS:-300}
python=
failed=0
mkdir -p "$out"

wanted() { [[ " ${PARTS:-driver kernels bench peers} " == *" $1 "* ]]; }

wanted peers && python=$(find_python)
INGOT_NVRTC_FOLDER=$(find_nvrtc)
export INGOT_NVRTC_FOLDER
export INGOT_CUDA_DEVICE=1

# NAME SECONDS COMMAND...: output to NAME.log (its first MB), the first failures and the end shown.
part() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  timeout "$limit" "$@" > "$out/$name.all" 2>&1 || status=$?
  head -c 1000000 "$out/$name.all" > "$out/$name.log"
  echo "== $name: status $status after $((SECONDS - start)) s"
  if ((status)); then
    failed=1
    grep -m 5 -A 8 -E 'Failure|rror' "$out/$name.log" | cut -c 1-300
  fi
  tail -n "${lines:-15}" "$out/$name.all" | cut -c 1-300
  rm "$out/$name.all"
}

nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem --format=csv,noheader | tee "$out/gpu.txt" || failed=1
echo "NVRTC: ${INGOT_NVRTC_FOLDER:-where the loader finds it}; Python with PyTorch: ${python:-none}"
wanted driver && part driver 120 "$folder/test_runtime" --gtest_filter='CudaDriver*:Nvrtc*'
wanted kernels && part kernels 240 "$folder/test_codegen" --gtest_filter='Cuda*'
if wanted bench; then
  lines=1 part bench 120 "$folder/ingot" bench cuda --json --seconds 4
  tail -n 1 "$out/bench.log" > "$out/cuda.json"
fi
if wanted peers && [[ -n $python ]]; then
  lines=40 part peers "$peers_seconds" "$python" bench/peers/cuda_peers.py --ingot-json "$out/cuda.json" \
    --output "$out/cuda_peers.json" --budget $((peers_seconds - 60))
elif wanted peers; then
  lines=40 part table 120 "$folder/ingot" bench cuda
fi
exit $failed
