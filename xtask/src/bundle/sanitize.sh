#!/usr/bin/env bash
# Runs the tests under compute-sanitizer's memcheck and racecheck.
#
#   ./sanitize.sh [RESULTS] [FILTER...]
#
# A missing tool is a failure, not a pass. Kernels built with `cargo xtask bundle --line-info` are reported
# with their source lines.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
shift || true
mkdir -p "$out"
out=$(cd "$out" && pwd)
export WARPFUSE_BUNDLE=$here
export WARPFUSE_DATA_DIR=$here/data
export WARPFUSE_RESULTS_DIR=$out
cd "$here"

tool=$(command -v compute-sanitizer || true)
[ -n "$tool" ] || tool=${CUDA_PATH:-/usr/local/cuda}/bin/compute-sanitizer
if [ ! -x "$tool" ]; then
    echo "compute-sanitizer was not found in PATH or ${CUDA_PATH:-/usr/local/cuda}/bin:" \
        "install the CUDA toolkit, or set CUDA_PATH" >&2
    exit 1
fi

failed=0
for check in memcheck racecheck; do
    for test in tests/*; do
        echo "==> $check $(basename "$test")"
        "$tool" --tool "$check" --error-exitcode 99 --target-processes all \
            "$test" --test-threads 1 "$@" 2>&1 | tee "$out/$check-$(basename "$test").log" || failed=$((failed + 1))
    done
done
echo "==> $failed failed; see $out"
[ "$failed" -eq 0 ]
