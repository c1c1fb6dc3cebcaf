#!/usr/bin/env bash
# Runs the checks on the GPU under compute-sanitizer's memcheck and racecheck.
#
#   ./sanitize.sh [RESULTS] [FILTER...]
#
# The tool comes with the CUDA toolkit (the wheel on PyPI lacks its launcher); a missing tool is a failure, not
# a pass. Kernels built with `cargo xtask bundle --line-info` are reported with their source lines.
# WARPFUSE_TEST_SUBSET=all runs every size; the small ones reach every kernel. JOBS (default: half the
# processors, 8 at most) processes share the cases, because racecheck slows a launch down a thousandfold.
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
half=$(($(nproc) / 2))
jobs=${JOBS:-$((half < 1 ? 1 : half > 8 ? 8 : half))}

toolkit=${CUDA_PATH:-/usr/local/cuda}
tool=$(command -v compute-sanitizer || echo "$toolkit/bin/compute-sanitizer")
if [ ! -x "$tool" ]; then
    echo "compute-sanitizer was found neither in PATH nor in $toolkit/bin: install the CUDA toolkit or set" \
        "CUDA_PATH" >&2
    exit 1
fi

failed=0
for check in memcheck racecheck; do
    for test in tests/*; do
        pids=()
        for ((job = 0; job < jobs; job++)); do
            log=$out/$check-$(basename "$test")-$job.log
            WARPFUSE_TEST_SHARD=$job/$jobs "$tool" --tool "$check" --error-exitcode 99 \
                "$test" --test-threads 1 "$@" >"$log" 2>&1 &
            pids+=($!)
        done
        for ((job = 0; job < jobs; job++)); do
            wait "${pids[job]}" || failed=$((failed + 1))
            log=$out/$check-$(basename "$test")-$job.log
            echo "==> $check $(basename "$test"), part $((job + 1)) of $jobs"
            grep -E "^test result|SUMMARY|FAILED|^error" "$log"
        done
    done
done
echo "==> $failed failed; see $out"
[ "$failed" -eq 0 ]
