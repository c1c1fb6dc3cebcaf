#!/usr/bin/env bash
# Checks, then measures, on a machine with an NVIDIA driver and nothing else.
#
#   ./run.sh [RESULTS] [FILTER...]
#
# RESULTS (default: results) receives the logs, the reports of the checks and the benchmarks' JSON lines, and
# summary.json. FILTER is handed to the checks. CHECK_ONLY=1 leaves out the benchmarks, BENCH_ONLY=1 the
# checks; BENCH_ARGS is handed to the benchmarks, such as BENCH_ARGS="--filter dense --budget-ms 100".
set -uo pipefail
shopt -s nullglob

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
shift || true
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"

# On this machine a GPU that cannot be opened is a failure, not a reason to ignore cases.
export WARPFUSE_DEVICES=${WARPFUSE_DEVICES:-cpu,cuda:0}
WARPFUSE_COMMIT=$(cat commit.txt)
export WARPFUSE_COMMIT
read -ra bench_args <<<"${BENCH_ARGS:-}"

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
    echo "{\"failed\":$failed,\"runs\":[$joined],\"about\":$(cat about.json)}" >"$out/summary.json"
    echo "==> $failed of ${#lines[@]} failed; see $out"
}

measure info devices ./bin/warpfuse info

if [ -z "${BENCH_ONLY:-}" ]; then
    for test in tests/*; do
        name=$(basename "$test")
        WARPFUSE_TEST_REPORT=$out/check-$name.json measure check "$name" "$test" "$@"
    done
fi

# A wrong result is not worth timing.
if [ "$failed" -eq 0 ] && [ -z "${CHECK_ONLY:-}" ]; then
    for bench in benches/*; do
        measure bench "$(basename "$bench")" "$bench" --bench --record "$out" ${bench_args[@]+"${bench_args[@]}"}
    done
fi

summarise
[ "$failed" -eq 0 ]
