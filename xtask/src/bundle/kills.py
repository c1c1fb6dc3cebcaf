#!/usr/bin/env python3
"""Kills a process of one job after the other, at any moment, and lets the next job go on from the checkpoint that is left.

    ./kills.py OUT SIZE LANES KILLS SECONDS -- COMMAND...

Each of LANES runs jobs of SIZE processes at the same time as the others, each process with the GPU of its number, until KILLS
processes have been killed in all before their jobs were done, or SECONDS are over. COMMAND writes its model to the file behind -o,
which is added here, as are --checkpoint and --every. OUT receives jobs.jsonl; a summary is printed. A job is in order that ended
within 10 s of the kill with an error of each survivor that names the rank, or whose survivors had ended already; and that left no
half of a model and no process. One of three jobs that find a checkpoint is left in peace. Where a process hangs, what its threads
wait for is noted; DEBUGGER, such as cuda-gdb, lists their calls. Processes of several jobs take turns on a GPU, and kernels that wait for others keep theirs: a COMMAND of a
few dozen sums is long enough. EVERY: time between two checkpoints (0.1s). A job that reaches its end must have the bits of the one that nobody disturbed.
"""

import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import threading
import time

LIMIT = 10.0
EVERY = os.environ.get("EVERY", "0.1s")
DEBUGGER = os.environ.get("DEBUGGER")
separator = sys.argv.index("--")
out, size, lanes, kills, seconds = sys.argv[1:separator]
out, size, lanes, kills = pathlib.Path(out), int(size), int(lanes), int(kills)
command = sys.argv[separator + 1 :]
end = time.monotonic() + float(seconds)
lock = threading.Lock()
log = open(out / "jobs.jsonl", "a", buffering=1)
records, jobs, debugged = [], 0, 0


def tensors(path):
    """The coefficients of a model: its report names the device."""
    content = path.read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    return [data[slice(*header[name]["data_offsets"])] for name in ("coef", "intercept")]


def next_job():
    global jobs
    with lock:
        jobs += 1
        return jobs


def start(job, folder, more=()):
    # Three ports for each job.
    port = 20000 + 4 * (job % 3000)
    about = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    processes = []
    for rank in range(size):
        environment = {**os.environ, **about, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        said = open(folder / f"{rank}.err", "w+")
        process = subprocess.Popen(
            [*command, "-o", str(folder / "model"), *more],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        processes.append((process, said))
    return processes


def text(said):
    said.seek(0)
    return said.read()


def wait(process, until):
    try:
        return process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def threads_of(pid):
    """What the threads of a process wait for."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        about = []
        for name in ("comm", "wchan", "syscall", "stack"):
            try:
                about.append((task / name).read_text().strip())
            except OSError as error:
                about.append(str(error))
        found.append(about)
    global debugged
    if DEBUGGER and debugged < 3:
        debugged += 1
        command = [DEBUGGER, "-p", str(pid), "-batch", "-ex", "thread apply all backtrace 30"]
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=25)
            found.append(ran.stdout[-20000:] + ran.stderr[-500:])
        except (OSError, subprocess.TimeoutExpired) as error:
            found.append(str(error))
    return found


def undisturbed(lane, found):
    folder = out / f"lane-{lane}"
    folder.mkdir(exist_ok=True)
    begun = time.monotonic()
    processes = start(next_job(), folder)
    codes = [wait(process, end) for process, _ in processes]
    for process, _ in processes:
        process.kill()
        process.wait()
    model = folder / "model"
    # None is of one that did not end.
    if any(code != 0 for code in codes) or not model.exists():
        print(codes, [text(said)[-300:] for _, said in processes], file=sys.stderr)
        return
    found.append((time.monotonic() - begun, tensors(model)))
    model.unlink()


def disturbed(lane, longest, expected):
    folder, job = out / f"lane-{lane}", next_job()
    checkpoint, model = folder / "checkpoint", folder / "model"
    chance = random.Random(job)
    victim, moment = chance.randrange(size), chance.uniform(0.0, longest)
    resumed = checkpoint.exists()
    in_peace = resumed and chance.randrange(3) == 0
    record = {"what": "killed", "job": job, "rank": victim, "after": moment, "resumed": resumed}
    begun = time.monotonic()
    processes = start(job, folder, ["--checkpoint", str(checkpoint), "--every", EVERY])
    record["killed"] = not in_peace and wait(processes[victim][0], begun + moment) is None
    if record["killed"]:
        processes[victim][0].kill()
    killed = time.monotonic()
    # A job that ends by itself may take longer.
    until = killed + LIMIT if record["killed"] else end + LIMIT
    codes = [wait(process, until) for process, _ in processes]
    record["seconds"] = time.monotonic() - killed
    record["hung"] = None in codes
    if record["hung"]:
        hung = [rank for rank, code in enumerate(codes) if code is None]
        record["threads"] = {rank: threads_of(processes[rank][0].pid) for rank in hung}
    for process, _ in processes:
        process.kill()
        process.wait()
    others = [rank for rank in range(size) if rank != victim]
    record["codes"] = codes
    said = {rank: text(processes[rank][1]) for rank in others}
    record["named"] = [f"rank {victim}" in said[rank] for rank in others]
    # Where all that is left to do was done, a process may go at any moment.
    record["over"] = all(codes[rank] == 0 for rank in others)
    record["checkpoint"], record["model"] = checkpoint.exists(), model.exists()
    if model.exists():
        record["same"] = tensors(model) == expected
        model.unlink()
        if record["checkpoint"]:
            checkpoint.unlink()
    in_order = not record["hung"] and (record["over"] or all(record["named"]))
    if not record["killed"]:
        in_order = record["over"]
    record["in_order"] = in_order and record.get("same", True)
    if not record["in_order"]:
        record["said"] = {rank: text[-400:] for rank, text in said.items()}
    with lock:
        records.append(record)
        log.write(json.dumps(record) + "\n")


def lane_of(lane, longest, expected):
    while time.monotonic() + longest + 2.0 < end:
        with lock:
            if sum(record["killed"] and not record["over"] for record in records) >= kills:
                return
        disturbed(lane, longest, expected)


def together(work, *more):
    threads = [threading.Thread(target=work, args=(lane, *more)) for lane in range(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
# The first jobs find the driver and its caches cold.
first, found = [], []
for jobs_of_all in (first, found):
    together(undisturbed, jobs_of_all)
    if len(jobs_of_all) < lanes:
        sys.exit("a job that nobody disturbs fails")
same = all(model == found[0][1] for _, model in first + found)
# Of several, so that nearly all kills come before the end.
longest = sorted(taken for taken, _ in found)[len(found) // 2]
together(lane_of, longest, found[0][1])
killed = [record for record in records if record["killed"]]
ends = sorted(record["seconds"] for record in killed)
complete = [record for record in records if record["model"]]
print(
    json.dumps(
        {
            "what": "kills",
            "members": size,
            "side_by_side": lanes,
            "undisturbed_seconds": longest,
            "undisturbed_same": same,
            "jobs": len(records),
            "killed": len(killed),
            "in_order": sum(record["in_order"] for record in killed),
            "named_by_all": sum(all(record["named"]) for record in killed),
            "over_before": sum(record["over"] for record in killed),
            "hung": sum(record["hung"] for record in killed),
            "resumed": sum(record["resumed"] for record in records),
            "complete": len(complete),
            "complete_same": sum(record["same"] for record in complete),
            "resumed_complete": sum(record["resumed"] for record in complete),
            "median_seconds": ends[len(ends) // 2] if ends else None,
            "longest_seconds": ends[-1] if ends else None,
        }
    )
)
sys.exit(0 if all(record["in_order"] for record in records) and same else 1)
