#!/usr/bin/env bash
# Records every benchmark of one commit on one GPU, in parts of under ten minutes each.
#
#   ./record.sh RESULTS [PART...]     the parts named, or all of them
#   ./record.sh --parts               their names
#
# RESULTS receives the GPU's folder with a file for each family, and parts.jsonl: how each part ended and how long it took. A part that is
# repeated appends, and the newest line of a case counts. A machine that is lent for ten minutes takes a part at a time.
# BUDGET_MS (100) is how long each case is sampled; LIMIT (580) the seconds after which a part is ended. Peers need their libraries on
# LD_LIBRARY_PATH; what is absent is left out. DATA is the folder for files of some 20 GB (a memory file system; default /dev/shm).
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
budget=${BUDGET_MS:-100}
limit=${LIMIT:-580}
data=${DATA:-/dev/shm}
WARPFUSE_COMMIT=${WARPFUSE_COMMIT:-$(cat "$here/commit.txt" 2>/dev/null || echo unknown)}
export WARPFUSE_COMMIT

# A part a line: its name, the program, and what it is given. One that takes longer than a part may is two.
parts() {
    cat <<'PARTS'
dense fused --filter fused/dense
sparse-f32 fused --filter fused/sparse+/f32/
sparse-f64 fused --filter fused/sparse+/f64/
drawn-f32 fused --filter fused/drawn+/f32/
drawn-f64 fused --filter fused/drawn+/f64/
steps fused --filter objective/,vector/,cg/
processor fused --filter cpu/,io/
reduce reduce
conv1d conv1d
kernel_sum kernel_sum
matmul matmul
qr qr
sparse_conv sparse_conv
plan-f32 plan --filter /f32/
plan-f64 plan --filter /f64/
learning learning
placement placement.sh
system system.sh
PARTS
}

# The folder of this GPU's results, as the benchmarks name it: `NVIDIA H200` has `h200`.
folder() {
    nvidia-smi --query-gpu=name --format=csv,noheader | head -1 | tr '[:upper:]' '[:lower:]' |
        tr -cs '[:alnum:]\n' '-' | sed -E 's/(^|-)nvidia(-|$)/\1\2/g; s/^-+|-+$//g'
}

run() { # PROGRAM ARGUMENTS...
    local program=$1
    shift
    case $program in
    *.sh) timeout -k 10 "$limit" "$here/$program" "$out/$(folder)" "$data/${program%.sh}" ;;
    *) timeout -k 10 "$limit" "$here/benches/$program" --bench --record "$out" --budget-ms "$budget" "$@" ;;
    esac
}

part() { # NAME
    local line name=$1 start=$SECONDS code=0
    line=$(parts | grep "^$name ") || {
        echo "there is no part \`$name\`: expected one of $(parts | cut -d' ' -f1 | tr '\n' ' ')" >&2
        return 2
    }
    echo "==> $name"
    read -ra words <<<"${line#* }"
    run "${words[@]}" >"$out/$name.log" 2>&1 || code=$?
    [ "$code" -eq 0 ] || tail -5 "$out/$name.log" >&2
    printf '{"part":"%s","exit":%s,"seconds":%s,"commit":"%s","date":"%s"}\n' "$name" "$code" "$((SECONDS - start))" \
        "$WARPFUSE_COMMIT" "$(date -u +%FT%TZ)" | tee -a "$out/parts.jsonl"
    return "$code"
}

case ${1:-} in
--parts) parts | cut -d' ' -f1 && exit ;;
'' | -*) sed -n '2,/^set /{s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;;
esac
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
cd "$here" || exit 1
[ $# -gt 0 ] || mapfile -t all < <(parts | cut -d' ' -f1)
failed=0
for name in "${@:-${all[@]}}"; do
    part "$name" || failed=$((failed + 1))
done
echo "==> $failed parts failed; see $out/parts.jsonl"
[ "$failed" -eq 0 ]
