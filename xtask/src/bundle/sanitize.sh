#!/usr/bin/env bash
# Runs the checks on the GPU under compute-sanitizer's memcheck and racecheck.
#
#   ./sanitize.sh [RESULTS] [FILTER...]
#
# A missing tool is a failure, not a pass. Kernels built with `cargo xtask bundle --line-info` are reported
# with their source lines. WARPFUSE_TEST_SUBSET=all runs every size; the small ones reach every kernel.
set -uo pipefail
shopt -s nullglob

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
shift || true
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
export WARPFUSE_DEVICES=${WARPFUSE_DEVICES:-cuda:0}
export WARPFUSE_TEST_SUBSET=${WARPFUSE_TEST_SUBSET:-small}

toolkit=${CUDA_PATH:-/usr/local/cuda}
tool=$here/sanitizer/compute-sanitizer
[ -x "$tool" ] || tool=$(command -v compute-sanitizer || echo "$toolkit/bin/compute-sanitizer")
if [ ! -x "$tool" ]; then
    echo "compute-sanitizer was found neither in PATH nor in $toolkit/bin: install the CUDA toolkit," \
        "set CUDA_PATH, or make the bundle with --sanitizer" >&2
    exit 1
fi

failed=0
for check in memcheck racecheck; do
    for test in tests/*; do
        name=$(basename "$test")
        echo "==> $check $name"
        "$tool" --tool "$check" --error-exitcode 99 "$test" --test-threads 1 "$@" 2>&1 |
            tee "$out/$check-$name.log" || failed=$((failed + 1))
    done
done
echo "==> $failed failed; see $out"
[ "$failed" -eq 0 ]
