#!/usr/bin/env bash
# Benchmarks of two commits in turns, on one machine: run.sh OLD NEW OUT, folders with programs of `benches/` and commit.txt.
# Steps in order of importance, or those of them that STEPS names; ends within LIMIT seconds (150).
set -u
here=$(cd "$(dirname "$0")" && pwd) old=$1 new=$2 out=$3
mkdir -p "$out"
limit=${LIMIT:-150}

turn() { # STEP ROUND WHICH PROGRAM ARGUMENTS...
    local step=$1 round=$2 which=$3 program=$4 folder left=$((limit - SECONDS)) start=$SECONDS code=0
    shift 4
    ((left < 4)) && return 1
    [ "$which" = old ] && folder=$old || folder=$new
    local to=$out/raw/$step/$which/$round
    mkdir -p "$to"
    WARPFUSE_COMMIT=$(cat "$folder/commit.txt") timeout -k 2 "$left" \
        "$folder/$program" --bench --record "$to" "$@" >"$to/log" 2>&1 || code=$?
    echo "$step $which $round exit $code, $((SECONDS - start)) s" | tee -a "$out/steps.txt"
}

step() { # NAME PROGRAM ARGUMENTS...
    local name=$1 turn round which
    shift
    [[ " ${STEPS:-$name} " == *" $name "* ]] || return 0
    # What drifts (clocks, memory, other guests) meets both alike.
    for turn in 0,old 0,new 1,new 1,old 2,old 2,new; do
        round=${turn%,*} which=${turn#*,}
        turn "$name" "$round" "$which" "$@" || return
    done
}

# Peers are not measured: a library that is not found is left out.
unset LD_LIBRARY_PATH WARPFUSE_BENCH_PYTHON
step objectives fused --filter objective/sparse-4000000x1000x20/,objective/dense-11000000x28/f32,objective/sparse-4000000x40000x20/f32 --budget-ms 100
step learning learning --filter rcv1,higgs
step vectors fused --filter cg/dense-11000000x28/f32,vector/ --budget-ms 100
step cpu fused --filter cpu/dense-9586980x28/f32,cpu/sparse-6391320x1000x20/f32,cpu/sparse-6391320x100000x20/f32,io/ --budget-ms 150
step products fused --filter fused/sparse-4000000x10000x20/f32/fused,fused/dense-8000000x128/f32/f --budget-ms 60
python3 "$here/compare.py" "$out"
