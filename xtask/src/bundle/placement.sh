#!/usr/bin/env bash
# From files to models: how long the way to the GPU takes, phase by phase.
#
#   ./placement.sh [RESULTS] [DATA]
#
# RESULTS (default: results) receives placement.jsonl. Data are made in DATA (default: /dev/shm/placement) where they are
# missing: 21 GB, and 60 GB of memory while they are made; SMALL=1 makes a hundredth of the rows. REPEATS (default 3) is how often each command runs.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
data=${2:-/dev/shm/placement}
repeats=${REPEATS:-3}
device=${DEVICE:-cuda:0}
mkdir -p "$out" "$data"
record=$(cd "$out" && pwd)/placement.jsonl
cd "$here"
part=$([ -n "${SMALL:-}" ] && echo 100 || echo 1)
warpfuse=./bin/warpfuse

make_once() {
    local file=$1
    shift
    [ -e "$file" ] && return
    echo "==> making $file" >&2
    "$@" || exit 1
}

labelled_text() {
    $warpfuse -q synth sparse --rows $((2000000 / part)) --cols 1000000 --nnz-per-row 20 --columns zipf:1.1 \
        --values ones --dtype f32 -o "$data/numbers.svm"
    sed -E 's/^-[^ ]+/-1/;t;s/^[^ ]+/1/' "$data/numbers.svm" >"$data/labelled.part"
    mv "$data/labelled.part" "$data/labelled.svm"
    rm "$data/numbers.svm"
}

dense_arrays() {
    $warpfuse -q synth dense --rows $((11000000 / part)) --cols 28 --dtype f32 -o "$data/dense.npy" \
        --target "$data/numbers.npy"
    ./bin/placement labels "$data/numbers.npy" "$data/labels.npy"
}

make_once "$data/labelled.svm" labelled_text
make_once "$data/labels.npy" dense_arrays
make_once "$data/large.wfc" $warpfuse -q synth sparse --rows $((80000000 / part)) --cols 1000000 --nnz-per-row 28 \
    --columns zipf:1.1 --values ones --dtype f32 -o "$data/large.wfc"
cat "$data"/*.svm "$data"/*.npy "$data"/*.wfc >/dev/null

# Runs a command, and records its wall time and the parts of its report that matter.
fit() {
    local name=$1
    shift
    for run in $(seq "$repeats"); do
        local begun ended
        begun=$(date +%s%N)
        "$warpfuse" train "$@" --device "$device" --dtype f32 --json >"$record.one" 2>"$record.log" || {
            cat "$record.log" >&2
            return 1
        }
        ended=$(date +%s%N)
        local wall=$(((ended - begun) / 1000000))
        # Coefficients and histories are long; what is kept stands before or after them as plain fields.
        local kept
        kept=$(grep -oE '"(objective|n_iter|transfer_seconds|seconds|parse_seconds|peak_device_bytes|rows|nnz)":[^,}{]*' \
            "$record.one" | sort -u | paste -sd,)
        local phases
        phases=$(grep -oE '"phases":\{([^{}]*\{[^{}]*\})*[^{}]*\}' "$record.one")
        echo "{\"what\":\"$name\",\"run\":$run,\"wall_ms\":$wall,${phases:-\"phases\":null}}" | tee -a "$record"
        echo "{\"what\":\"$name report\",\"run\":$run,\"fields\":\"$(echo "$kept" | tr -d '"')\"}" >>"$record"
    done
    rm -f "$record.one" "$record.log"
}

provenance() {
    local gpu
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
    printf '{"what":"provenance","device":"%s","driver":"%s","threads":%s,"commit":"%s","date":"%s"}\n' \
        "${gpu%%,*}" "${gpu##*, }" "$(nproc)" "${WARPFUSE_COMMIT:-$(cat commit.txt 2>/dev/null)}" "$(date -u +%FT%TZ)"
}

provenance >"$record"
./bin/placement rates "$device" | tee -a "$record"
./bin/placement fit "$device" $((11000000 / part)) | tee -a "$record"
fit "logreg npy" logreg "$data/dense.npy" --target "$data/labels.npy"
fit "logreg libsvm" logreg "$data/labelled.svm"
fit "logreg libsvm reproducible" logreg "$data/labelled.svm" --reproducible
fit "ridge 18.9 GB cache" ridge "$data/large.wfc"
echo "==> see $record"
