#!/usr/bin/env bash
# X larger than what the GPU may hold of it: products and fits at several limits, beside the rate of the link.
#
#   ./system.sh [RESULTS]
#
# RESULTS (default: results) receives system.jsonl. Takes 20 GB of host memory, of which up to a quarter of the host's is
# page-locked; SMALL=1 makes a hundredth of the entries.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
device=${DEVICE:-cuda:0}
mkdir -p "$out"
record=$(cd "$out" && pwd)/system.jsonl
cd "$here"
part=$([ -n "${SMALL:-}" ] && echo 100 || echo 1)

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
printf '{"what":"provenance","device":"%s","driver":"%s","threads":%s,"commit":"%s","date":"%s"}\n' \
    "${gpu%%,*}" "${gpu##*, }" "$(nproc)" "${WARPFUSE_COMMIT:-$(cat commit.txt 2>/dev/null)}" "$(date -u +%FT%TZ)" \
    >"$record"

./bin/system stream "$device" $((400000000 / part)) | tee -a "$record" || exit 1
./bin/system fit "$device" $((10000000 / part)) $([ -n "${SMALL:-}" ] && echo 128MiB || echo 1GiB) | tee -a "$record"
