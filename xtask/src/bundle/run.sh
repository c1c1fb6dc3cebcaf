#!/usr/bin/env bash
# Checks, then measures, on a machine with an NVIDIA driver and nothing else.
#
#   ./run.sh [RESULTS] [FILTER...]
#
# RESULTS (default: results) receives the logs, the benchmarks' JSON lines and summary.json. FILTER is
# handed to the tests. CHECK_ONLY=1 leaves out the benchmarks, BENCH_ONLY=1 the checks.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
shift || true
mkdir -p "$out"
out=$(cd "$out" && pwd)

# What tests and benchmarks look for in place of the source tree.
export WARPFUSE_BUNDLE=$here
export WARPFUSE_DATA_DIR=$here/data
export WARPFUSE_RESULTS_DIR=$out
cd "$here"

lines=()
failed=0

# Runs one program, keeps its log, and notes how it ended.
measure() {
    local kind=$1 name=$2
    shift 2
    echo "==> $kind $name"
    local start=$SECONDS code=0
    "$@" 2>&1 | tee "$out/$kind-$name.log" || code=$?
    lines+=("{\"kind\":\"$kind\",\"name\":\"$name\",\"exit\":$code,\"seconds\":$((SECONDS - start))}")
    [ "$code" -eq 0 ] || failed=$((failed + 1))
}

summarise() {
    local joined
    joined=$(IFS=,; echo "${lines[*]}")
    echo "{\"failed\":$failed,\"runs\":[$joined],\"about\":$(cat "$here/about.json")}" >"$out/summary.json"
    echo "==> $failed of ${#lines[@]} failed; see $out"
}

measure info devices ./bin/warpfuse info

if [ -z "${BENCH_ONLY:-}" ]; then
    for test in tests/*; do
        measure check "$(basename "$test")" "$test" "$@"
    done
fi

# A wrong result is not worth timing.
if [ "$failed" -eq 0 ] && [ -z "${CHECK_ONLY:-}" ]; then
    for bench in benches/*; do
        measure bench "$(basename "$bench")" "$bench" --bench
    done
fi

summarise
[ "$failed" -eq 0 ]
