#!/usr/bin/env bash
# Several GPUs of one machine: checks, times, then kills. Needs PyTorch's NCCL (the package nvidia-nccl-cu13) or another.
#
#   ./scaling.sh [RESULTS] [GPUS] [SECONDS]
#
# RESULTS (default: results) receives scaling.jsonl, and said.txt with the machine and what programs said; kills add jobs.jsonl.
# GPUS: such as 1,2 (default) or 1,2,4,8. SECONDS: about how long all of it may take (default 400); what is left when they are over
# is not begun. ONLY: parts, with commas between; all if not set. Each can run alone, at the same time as others on other GPUs
# (CUDA_VISIBLE_DEVICES):
#   smoke    a short look whether NCCL, sums and a fit work, and nothing else
#   scaling  the same bits, sums, products, Newton steps, conjugate gradients, fits, cross-validation, by each number of GPUs
#   criteo   a quarter of the Criteo Terabyte's shape from the binary cache to the model, on all GPUs
#   jobs     jobs of the program: threads, processes, torchrun; many starts
#   kills    jobs with a process killed, which go on from their checkpoints
# CRITEO_ROWS (10⁹), CRITEO_SECONDS (130). KILLS: jobs with a process killed (20), LANES (4) of which run at the same time. STARTS:
# starts, fits and ends of each of SIDE_BY_SIDE (4) programs (20). DIVIDE: how many times smaller shapes are (1), for programs that
# were built without optimisation. KIND: `cpu` for members without GPUs, to try this script.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-results}
gpus=${2:-1,2}
seconds=${3:-400}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
bin=${BIN:-./bin}
most=${gpus##*,}
divide=${DIVIDE:-1}
kind=${KIND:-cuda}
export KIND=$kind
if [ "$kind" = cpu ]; then one=(--device cpu) all=(--device cpu); else one=(--device cuda:0) all=(--gpus "$most"); fi
# Multicast over NVLink stays off: it can put GPUs out of service that others share.
export NCCL_NVLS_ENABLE=0
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
# No job of this script may hang for longer.
export WARPFUSE_GROUP_LIMIT=${WARPFUSE_GROUP_LIMIT:-60}
[ -f commit.txt ] && WARPFUSE_COMMIT=$(cat commit.txt) && export WARPFUSE_COMMIT
# What programs write and say stays here until the end, and then goes into few files.
work=$(mktemp -d)
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
printf '{"what":"provenance","device":"%s","gpus":"%s","driver":"%s","threads":%s,"commit":"%s","date":"%s"}\n' \
    "${gpu%%,*}" "$gpus" "${gpu##*, }" "$(nproc)" "${WARPFUSE_COMMIT:-}" "$(date -u +%FT%TZ)" >"$out/scaling.jsonl"
{
    nvidia-smi topo -m
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
    free -g
    df -h /tmp /dev/shm
} >"$out/said.txt" 2>&1
finish() {
    local said
    for said in "$work"/*.err; do
        [ -s "$said" ] || continue
        printf '\n== %s\n' "$(basename "$said" .err)" >>"$out/said.txt"
        tail -c 4000 "$said" >>"$out/said.txt"
    done
    [ -s "$work/jobs.jsonl" ] && cp "$work/jobs.jsonl" "$out/jobs.jsonl"
    rm -rf "$work"
}
trap finish EXIT
left() { echo $((seconds - SECONDS)); }
wants() { [ -z "${ONLY:-}" ] || [[ ",$ONLY," == *",$1,"* ]]; }

# step NAME LIMIT COMMAND…: runs it if there is time, at most LIMIT seconds, and notes how it ended.
step() {
    local name=$1 limit=$2 code=0 begun=$SECONDS
    shift 2
    if [ "$(left)" -lt 5 ]; then
        echo "{\"what\":\"step\",\"name\":\"$name\",\"exit\":null}" | tee -a "$out/scaling.jsonl"
        return
    fi
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    timeout -k 5 "$limit" "$@" >"$work/$name.out" 2>"$work/$name.err" || code=$?
    grep '^{' "$work/$name.out" >>"$out/scaling.jsonl"
    echo "{\"what\":\"step\",\"name\":\"$name\",\"exit\":$code,\"seconds\":$((SECONDS - begun))}" |
        tee -a "$out/scaling.jsonl"
    [ "$code" -eq 0 ] || tail -5 "$work/$name.err"
}

# launch PROCESSES COMMAND…: what torchrun does, without its agent: a process for each GPU.
launch() {
    local size=$1 port=$((20000 + RANDOM % 20000)) code=0 rank
    shift
    pids=()
    for ((rank = 0; rank < size; rank++)); do
        RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$@" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
    return "$code"
}
# beside TIMES COMMAND…: runs COMMAND TIMES times at the same time.
beside() {
    local times=$1 code=0 pids=() pid
    shift
    for ((i = 0; i < times; i++)); do
        "$@" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
    return "$code"
}
export -f launch beside

# scaling NAME LIMIT WHAT OPTIONS…: by each number of GPUs. What is not done in time ends in good order before it is ended.
scaling() {
    local name=$1 limit=$2
    shift 2
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    step "$name" "$limit" "$bin/scaling" "$@" --gpus "$gpus" --kind "$kind" --divide "$divide" --seconds $((limit * 4 / 5))
}

step info 60 "$bin/warpfuse" info
if [ "${ONLY:-}" = smoke ]; then
    step small-sums 60 "$bin/scaling" sums --gpus "$gpus" --kind "$kind" --divide 4096
    step small-bits 120 "$bin/scaling" bits --gpus "$gpus" --kind "$kind" --divide 20
    step processes 60 bash -c "launch $most $bin/scaling sums --gpus $most --divide 4096"
    exit
fi

if wants scaling; then
    # 1. The same bits.
    scaling bits 100 bits
    # 2. Times. Products are planned with the rates of this very GPU.
    [ "$kind" = cuda ] && step calibrate 60 "$bin/warpfuse" calibrate --device cuda:0
    scaling sums 60 sums
    scaling shapes-higgs 60 shapes --only higgs
    scaling shapes-kddb 120 shapes --only kddb
fi
if wants criteo; then
    # 3. The largest fit.
    step criteo "${CRITEO_SECONDS:-130}" python3 criteo.py "$work" "$bin" "$most" "${CRITEO_SECONDS:-130}" "${CRITEO_ROWS:-1000000000}"
fi
if wants scaling; then
    scaling shapes-rcv1-avazu 90 shapes --only rcv1,avazu
    scaling cv 60 cv
    scaling shapes-others 90 shapes --only dense-512,sparse-10k,sparse-1m
    scaling kddb-overlap 90 products --only kddb --form transpose --overlap planned,never
    scaling kddb-reproducible 60 products --only kddb --summation reproducible
fi

# A report names its device; coefficients are the model.
same() {
    python3 - "$@" <<'PYTHON'
import json, struct, sys
def tensors(path):
    content = open(path, "rb").read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    return [data[slice(*header[name]["data_offsets"])] for name in ("coef", "intercept")]
try:
    print("true" if tensors(sys.argv[1]) == tensors(sys.argv[2]) else "false")
except OSError:
    print("null")
PYTHON
}

# 4. Jobs of the program: a fit by threads, by processes, by torchrun.
if wants jobs; then
    data=$work/rows.svm
    python3 - "$data" <<'PYTHON'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as out:
    for row in range(20000):
        x = [random.gauss(0, 1) for _ in range(20)]
        label = int(sum(x[:5]) + random.gauss(0, 1) > 0)
        out.write(str(label) + "".join(f" {j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n")
PYTHON
    fit=("$bin/warpfuse" train logreg "$data" --reproducible --dtype f32)
    step train-one 60 "${fit[@]}" "${one[@]}" -o "$work/one.model"
    step train-threads 60 "${fit[@]}" "${all[@]}" -o "$work/threads.model"
    step train-processes 60 bash -c "launch $most ${fit[*]} -o $work/processes.model"
    step train-torchrun 60 python3 -m torch.distributed.run --nproc-per-node "$most" --no-python "${fit[@]}" -o "$work/torchrun.model"
    for way in threads processes torchrun; do
        echo "{\"what\":\"same bits of a fit\",\"by\":\"$way\",\"same\":$(same "$work/one.model" "$work/$way.model")}" |
            tee -a "$out/scaling.jsonl"
    done
    step starts "${STARTS_SECONDS:-60}" \
        bash -c "beside ${SIDE_BY_SIDE:-4} $bin/scaling starts --gpus $most --kind $kind --times ${STARTS:-20}"
fi

# 5. Jobs that are killed, and go on from their checkpoints. Conjugate gradients on as many rows as columns take thousands of
# products, so that the fit lasts for longer than the waits before the kills; sums of sparse rows stay on the GPUs.
if wants kills; then
    wide=$work/wide.wfc
    "$bin/warpfuse" synth sparse --rows 200000 --cols 200000 --nnz-per-row 20 --seed 3 -o "$wide" >"$work/synth.err" 2>&1
    long=("$bin/warpfuse" train ridge "$wide" --reproducible --alpha 1e-9 --tol 1e-12
        --solver conjugate-gradient --max-iter "${ITERATIONS:-8000}" -q)
    step long-one 60 "${long[@]}" "${one[@]}" -o "$work/alone.model"
    step long-all 60 bash -c "launch $most ${long[*]} -o $work/whole.model"
    echo "{\"what\":\"same bits of a long fit\",\"same\":$(same "$work/alone.model" "$work/whole.model")}" | tee -a "$out/scaling.jsonl"
    # Jobs side by side, of which one process each is killed at any moment.
    EVERY=0.02s step kills $(($(left) - 5)) python3 kills.py "$work" "$most" "${LANES:-4}" "${KILLS:-20}" $(($(left) - 15)) -- \
        "${long[@]/%${ITERATIONS:-8000}/${KILL_ITERATIONS:-60}}"
fi
