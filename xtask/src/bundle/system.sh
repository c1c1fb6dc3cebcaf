#!/usr/bin/env bash
# X larger than what the GPU may hold of it, the cost model, and the way from files to models.
#
#   ./system.sh [RESULTS]
#
# RESULTS (default: results) receives system.jsonl with what the programs said in system.log, and placement.jsonl where there
# is time for it. SECONDS_MAX (default 300)
# bounds all of it: each part gets what is left, the most important first, and what there is no time for is left out and
# said. Takes 60 GB of host memory, of which up to a quarter of the host's is page-locked. SMALL=1 makes a hundredth of the
# entries.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
device=${DEVICE:-cuda:0}
limit=${SECONDS_MAX:-300}
mkdir -p "$out"
out=$(cd "$out" && pwd)
record=$out/system.jsonl
log=$out/system.log
part_lines=$(mktemp)
cd "$here"
small=${SMALL:-}
part=$([ -n "$small" ] && echo 100 || echo 1)
# The rates of this machine, for this run alone.
XDG_CACHE_HOME=$(mktemp -d)
export XDG_CACHE_HOME

gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
printf '{"what":"provenance","device":"%s","driver":"%s","threads":%s,"commit":"%s","date":"%s"}\n' \
    "${gpu%%,*}" "${gpu##*, }" "$(nproc)" "${WARPFUSE_COMMIT:-$(cat commit.txt 2>/dev/null)}" "$(date -u +%FT%TZ)" \
    >"$record"

# Runs a part in at most MOST seconds, if there are five left, and keeps its lines and how it ended.
measure() {
    local name=$1 most=$2 left=$((limit - SECONDS))
    shift 2
    local bound=$((left < most ? left : most)) begun=$SECONDS code=0
    if [ "$bound" -lt 5 ]; then
        echo "{\"what\":\"part\",\"name\":\"$name\",\"left_out\":true}" | tee -a "$record"
        return
    fi
    echo "==> $name" >&2
    echo "==> $name" >>"$log"
    timeout "$bound" "$@" >"$part_lines" 2>>"$log" || code=$?
    # A line that was cut is none.
    grep -E '^\{.*\}$' "$part_lines" | tee -a "$record" | cut -c1-300
    echo "{\"what\":\"part\",\"name\":\"$name\",\"exit\":$code,\"seconds\":$((SECONDS - begun))}" | tee -a "$record"
}

# timeout runs programs, no functions.
measure calibrate 30 bash -c "./bin/warpfuse calibrate --device '$device' --json | tr -d '\n' |
    sed 's/^{ */{\"what\":\"calibration\",/'; echo"
measure stream 90 ./bin/system stream "$device" $((400000000 / part))
measure choice 110 ./bin/system choice "$device" 100 "$part"
measure fit 30 ./bin/system fit "$device" $((10000000 / part)) "$([ -n "$small" ] && echo 128MiB || echo 1GiB)"
if [ -n "$small" ]; then
    measure kddb 60 ./bin/system kddb "$device" 64MiB 0.01
else
    measure kddb 90 ./bin/system kddb "$device" 2GiB
fi
# cuBLAS and cuSPARSE have to be where the dynamic linker looks.
measure table4 90 ./bin/system table4 "$device"
# A result that is wrong, memory that is left behind or more than the limit ends it with an error.
measure soak "$((${SOAK_SECONDS:-25} + 20))" ./bin/system soak "$device" "${SOAK_SECONDS:-25}"
measure large 60 ./bin/system large "$device" $((5000000000 / part))
left=$((limit - SECONDS))
if [ "$left" -gt 60 ]; then
    REPEATS=3 SMALL=$small DEVICE=$device timeout "$left" ./placement.sh "$out" || echo "==> placement was cut" >&2
fi
rm -rf "$part_lines" "$XDG_CACHE_HOME"
echo "==> see $record, $SECONDS s"
