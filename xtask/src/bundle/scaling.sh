#!/usr/bin/env bash
# Several GPUs of one machine: checks, times, then kills. Needs PyTorch's NCCL (the package nvidia-nccl-cu13) or another.
#
#   ./scaling.sh [RESULTS] [GPUS] [SECONDS]
#
# RESULTS (default: results) receives scaling.jsonl and the logs. GPUS: such as 1,2 (default) or 1,2,4,8.
# SECONDS: about how long all of it may take (default 400); what is left when they are over is not begun. ONLY=smoke leaves
# out everything but a short look whether NCCL, sums and a fit work. KILLS: jobs with a process killed (default 20), LANES (4)
# of which run at the same time. STARTS: starts, fits and ends of each of SIDE_BY_SIDE (4) programs (default 20). DIVIDE: how many
# times smaller sparse shapes are (default 1), for programs that were built without optimisation.
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
# Multicast over NVLink stays off: it can put GPUs out of service that others share.
export NCCL_NVLS_ENABLE=0
export NCCL_DEBUG=${NCCL_DEBUG:-WARN}
# No job of this script may hang for longer.
export WARPFUSE_GROUP_LIMIT=${WARPFUSE_GROUP_LIMIT:-60}
[ -f commit.txt ] && WARPFUSE_COMMIT=$(cat commit.txt) && export WARPFUSE_COMMIT
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
printf '{"what":"provenance","device":"%s","gpus":"%s","driver":"%s","threads":%s,"commit":"%s","date":"%s"}\n' \
    "${gpu%%,*}" "$gpus" "${gpu##*, }" "$(nproc)" "${WARPFUSE_COMMIT:-}" "$(date -u +%FT%TZ)" >"$out/scaling.jsonl"
left() { echo $((seconds - SECONDS)); }

# step NAME LIMIT COMMAND…: runs it if there is time, at most LIMIT seconds, and notes how it ended.
step() {
    local name=$1 limit=$2 code=0 begun=$SECONDS
    shift 2
    if [ "$(left)" -lt 5 ]; then
        echo "{\"what\":\"step\",\"name\":\"$name\",\"exit\":null}" >>"$out/scaling.jsonl"
        return
    fi
    [ "$limit" -gt "$(left)" ] && limit=$(left)
    timeout -k 5 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.err" || code=$?
    grep '^{' "$out/$name.out" >>"$out/scaling.jsonl"
    echo "{\"what\":\"step\",\"name\":\"$name\",\"exit\":$code,\"seconds\":$((SECONDS - begun))}" |
        tee -a "$out/scaling.jsonl"
    [ "$code" -eq 0 ] || tail -5 "$out/$name.err"
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

nvidia-smi topo -m >"$out/topology.txt" 2>&1
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv >"$out/gpus.txt" 2>&1

step info 60 "$bin/warpfuse" info
step small-sums 60 "$bin/scaling" sums --gpus "$most" --divide 4096
step small-bits 120 "$bin/scaling" bits --gpus "$gpus" --divide 20
step processes 60 bash -c "launch $most $bin/scaling sums --gpus $most --divide 4096"
[ "${ONLY:-}" = smoke ] && exit

# 1. The same bits.
step bits 100 "$bin/scaling" bits --gpus "$gpus"
# 2. Times. Products are planned with the rates of this very GPU.
step calibrate 60 "$bin/warpfuse" calibrate --device cuda:0
step sums 60 "$bin/scaling" sums --gpus "$most"
step starts "${STARTS_SECONDS:-60}" bash -c "beside ${SIDE_BY_SIDE:-4} $bin/scaling starts --gpus $most --times ${STARTS:-20}"
for shape in higgs dense-512; do
    step "products-$shape" 90 "$bin/scaling" products --gpus "$gpus" --only "$shape"
done
for shape in sparse-10k sparse-1m kddb; do
    step "products-$shape" 60 "$bin/scaling" products --gpus "$gpus" --only "$shape" --divide "${DIVIDE:-1}"
done
step products-kddb-reproducible 60 "$bin/scaling" products --gpus "$gpus" --only kddb --divide "${DIVIDE:-1}" \
    --summation reproducible
step fits-higgs 60 "$bin/scaling" fits --gpus "$gpus" --only higgs
step fits-sparse 60 "$bin/scaling" fits --gpus "$gpus" --only sparse-1m --divide "${DIVIDE:-1}"
# 3. Jobs of the program: a fit by threads, by processes, by torchrun; and what happens when one is killed.
data=$out/rows.svm
python3 - "$data" <<'PYTHON'
import random, sys
random.seed(1)
with open(sys.argv[1], "w") as out:
    for row in range(20000):
        x = [random.gauss(0, 1) for _ in range(20)]
        label = int(sum(x[:5]) + random.gauss(0, 1) > 0)
        out.write(str(label) + "".join(f" {j + 1}:{v:.4f}" for j, v in enumerate(x)) + "\n")
PYTHON
fit=("$bin/warpfuse" train logreg "$data" --reproducible --json --dtype f32)
step train-one 60 "${fit[@]}" --device cuda:0
step train-threads 60 "${fit[@]}" --gpus "$most"
step train-processes 60 bash -c "launch $most ${fit[*]}"
step train-torchrun 60 python3 -m torch.distributed.run --nproc-per-node "$most" --no-python "${fit[@]}"
for way in threads processes torchrun; do
    python3 - "$out" "$way" <<'PYTHON' >>"$out/scaling.jsonl"
import json, sys
def of(name):
    for line in open(f"{sys.argv[1]}/train-{name}.out"):
        if line.startswith("{"):
            return json.loads(line)
one, other = of("one"), of(sys.argv[2])
same = bool(one and other) and one["coef"] == other["coef"] and one["intercept"] == other["intercept"]
print(json.dumps({"what": "same bits of a fit", "by": sys.argv[2], "same": same}))
PYTHON
done
# 4. Jobs that are killed, and go on from their checkpoints. Conjugate gradients on as many rows as columns take thousands of
# products, so that the fit lasts for longer than the waits before the kills; sums of sparse rows stay on the GPUs.
wide=$out/wide.wfc
"$bin/warpfuse" synth sparse --rows 200000 --cols 200000 --nnz-per-row 20 --seed 3 -o "$wide" >"$out/synth.out" 2>&1
long=("$bin/warpfuse" train ridge "$wide" --reproducible --alpha 1e-9 --tol 1e-12
    --solver conjugate-gradient --max-iter "${ITERATIONS:-8000}" -q)
step long-one 60 "${long[@]}" --device cuda:0 -o "$out/alone.model"
step long-all 60 bash -c "launch $most ${long[*]} -o $out/whole.model"
# A report names its device; coefficients are the model.
same() {
    python3 - "$@" <<'PYTHON'
import json, struct, sys
def tensors(path):
    content = open(path, "rb").read()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:8 + length]), content[8 + length:]
    return [data[slice(*header[name]["data_offsets"])] for name in ("coef", "intercept")]
print("true" if tensors(sys.argv[1]) == tensors(sys.argv[2]) else "false")
PYTHON
}
echo "{\"what\":\"same bits of a long fit\",\"same\":$(same "$out/alone.model" "$out/whole.model")}" | tee -a "$out/scaling.jsonl"

# Jobs side by side, of which one process each is killed at any moment.
EVERY=0.02s step kills $(($(left) - 5)) python3 kills.py "$out" "$most" "${LANES:-4}" "${KILLS:-20}" $(($(left) - 15)) -- \
    "${long[@]/%${ITERATIONS:-8000}/${KILL_ITERATIONS:-60}}"
rm -rf "$data" "$wide" "$out"/*.wfc "$out"/*.model "$out"/lane-*
