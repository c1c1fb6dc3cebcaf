#!/usr/bin/env python3
"""A quarter of the Criteo Terabyte's shape, from the binary cache to the model: 10⁹ rows, 10⁶ columns, 39 categories a row.

    ./criteo.py OUT BIN GPUS SECONDS [ROWS]

A cache of a part of the rows is written and fitted first: its rates, the memory that is left and SECONDS decide how many rows, and
whether 39 or 26 entries of each, come next. Lines of JSON say what was chosen and why. The file is in memory (memfd), where all
threads write it at once and no disk is waited for, and is gone with this program. OUT receives what the fits say (criteo-N.err).
`seconds_from_cache_to_model` ends when the model's file is there. What follows, scores on the training rows with all of them in order
on every member's host, is waited for while there are time and memory.
KIND: `cpu` for members without GPUs, to try the program.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

out, binaries, gpus, seconds = sys.argv[1:5]
out, binaries, gpus = pathlib.Path(out), pathlib.Path(binaries), int(gpus)
wanted = int(sys.argv[5]) if len(sys.argv) > 5 else 1_000_000_000
COLUMNS = 1_000_000
end = time.monotonic() + float(seconds)
KIND = os.environ.get("KIND", "cuda")
# Parts of the wanted rows, with entries of a row: the first that time and memory allow is taken.
CHOICES = [(1, 39), (1, 26), (2, 39), (2, 26), (4, 39), (8, 39), (16, 39)]
# The part that shows the rates.
PROBE = 32
# Bytes of a row that each member has on its host besides the file, until there is a model: labels and their codes.
HOST_BYTES = 32
# The share of the memory that stays free while rows are scored.
RESERVE = 0.08
# What may go wrong with a forecast.
SLACK = 1.25


def say(**fields):
    print(json.dumps(fields), flush=True)


def left():
    return end - time.monotonic()


def file_bytes(rows, per_row):
    return rows * (8 * per_row + 12)


def needed(rows, per_row):
    return file_bytes(rows, per_row) + rows * HOST_BYTES * gpus


def free_memory():
    """Bytes that this program may still take: of the machine, and of its control group."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    free = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
    for most, used in [
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ]:
        try:
            folder = pathlib.Path("/sys/fs/cgroup")
            free.append(int((folder / most).read_text()) - int((folder / used).read_text()))
        except (OSError, ValueError):
            pass
    return min(free)


def ran(name, command, result=None):
    """Seconds of a command, those until the file `result` was there, its exit code, and the JSON that it prints."""
    begun, total, until = time.monotonic(), memory_total(), None
    with open(out / f"{name}.out", "w+") as said, open(out / f"{name}.err", "w+") as errors:
        environment = {"WARPFUSE_LOG": "info", **os.environ}
        process = subprocess.Popen(command, stdout=said, stderr=errors, env=environment)
        while process.poll() is None:
            time.sleep(0.01)
            if until is None and result is not None and result.exists():
                until = time.monotonic() - begun
            is_short = until is not None and free_memory() < RESERVE * total
            if left() < 1.0 or is_short:
                process.kill()
                process.wait()
        taken = time.monotonic() - begun
        if until is None and result is not None and result.exists():
            until = taken
        said.seek(0)
        errors.seek(0)
        printed, errors = said.read(), errors.read()
    (out / f"{name}.out").unlink()
    # NCCL says its version on standard output, too.
    begins = printed.find("{")
    found = json.JSONDecoder().raw_decode(printed[begins:])[0] if process.returncode == 0 else {}
    if process.returncode != 0:
        say(what="criteo step", name=name, exit=process.returncode, seconds=taken, error=errors[-600:])
    return taken, until, process.returncode, found


def memory_total():
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return [1024 * int(line.split()[1]) for line in lines if line.startswith("MemTotal")][0]


def whole(number, rows, per_row):
    """Writes and fits; seconds of both, None where either failed."""
    file = os.memfd_create("criteo.wfc")
    path = f"/proc/{os.getpid()}/fd/{file}"
    try:
        shape = ["--rows", str(rows), "--cols", str(COLUMNS), "--per-row", str(per_row)]
        write = [binaries / "scaling", "criteo", "--file", path, *shape]
        written, _, code, about = ran(f"criteo-{number}-write", write)
        if code != 0:
            return None
        say(**about)
        where = ["--gpus", str(gpus)] if KIND == "cuda" else ["--device", "cpu"]
        fit = ["train", "logreg", path, "--dtype", "f32", "--tol", "1e-4", "--max-iter", "30", "--json", "-q"]
        model = out / "criteo.model"
        taken, until, code, found = ran(f"criteo-{number}", [binaries / "warpfuse", *fit, "-o", model, *where], model)
        if until is None:
            return None
        wanted_fields = (
            "device n_iter converged convergence objective gradient_norm_ratio solver solver_reason parse_seconds "
            "transfer_seconds seconds peak_device_bytes memory phases training"
        )
        say(
            what="criteo",
            rows=rows,
            cols=COLUMNS,
            per_row=per_row,
            entries=rows * per_row,
            file_bytes=file_bytes(rows, per_row),
            members=gpus,
            write_seconds=written,
            seconds_from_cache_to_model=until,
            seconds_with_scores=taken if code == 0 else None,
            entries_s=rows * per_row / until,
            fit={name: found[name] for name in wanted_fields.split() if name in found},
            model_bytes=model.stat().st_size,
        )
        model.unlink()
        return written, until
    finally:
        os.close(file)


def forecast(tried, rows, per_row):
    """Seconds, of what fewer rows took: start-up does not grow, but is counted as if it did only where nothing else is known."""
    (first, taken), *more = tried
    entries = rows * per_row
    if more:
        (second, longer) = more[0]
        rate = max(0.0, longer - taken) / (second - first)
        return longer + rate * (entries - second)
    return taken * entries / first


tried = []
# Two small ones: what does not grow with the rows is seen in both.
for number, part in enumerate((8 * PROBE, PROBE)):
    rows = max(1000, wanted // part)
    if needed(rows, 39) > free_memory():
        continue
    taken = whole(number, rows, 39)
    if taken is None:
        sys.exit("a small fit fails")
    tried.append((rows * 39, sum(taken)))
passed = []
number = 2
for part, per_row in CHOICES:
    rows = wanted // part
    memory, seconds_needed = free_memory(), SLACK * forecast(tried, rows, per_row)
    why = None
    if needed(rows, per_row) > 0.95 * memory:
        why = f"needs {needed(rows, per_row) / 1e9:.0f} GB of memory, {memory / 1e9:.0f} GB are free"
    elif seconds_needed > left():
        why = f"forecast {seconds_needed:.0f} s, {left():.0f} s are left"
    if why:
        passed.append(f"{rows} rows of {per_row}: {why}")
        continue
    say(what="criteo choice", rows=rows, per_row=per_row, forecast_seconds=seconds_needed, passed_over=passed)
    if whole(number, rows, per_row) is not None:
        sys.exit(0)
    number += 1
    passed.append(f"{rows} rows of {per_row}: failed")
say(what="criteo choice", rows=None, passed_over=passed)
