"""Everyday problems: warpfuse beside scikit-learn, liblinear and statsmodels on the same cores.

    cargo build --release -p warpfuse-benches --bin everyday
    python benches/everyday/everyday.py target/release/everyday benches/everyday/results/cpu.jsonl [FILTER] [--device auto]

With `--device auto` warpfuse fits on the first GPU, beside the same peers on the cores of its host. `--beside FILE` does both
with one run of the peers: the fits on the GPU are recorded in FILE. `--quick` spends a tenth of a second on each peer instead
of 0.3, and leaves out what cannot be the fastest: tighter tolerances of a solver that has come within 1e-8 of the best known,
and saga on sparse X, which takes half a minute. Where there is no checkout, the environment variable COMMIT names the commit.

Every solver fits every problem at its own default tolerance and at tight ones; reading is left out. A peer's time is that
of its fastest fit whose objective is within 1e-6 of the best known. `gap` is warpfuse's distance from that objective, at
its default tolerance. Needs scikit-learn and statsmodels. Threads of the peers: those of the machine.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parent))
from peers import fits, objective  # noqa: E402
from problems import everything  # noqa: E402

NEAR = 1e-6
#: Where a tighter tolerance of the same solver could only be slower.
CLOSE = 1e-8


def write(folder, number, name, estimator, params, x, y):
    """Raw arrays, and the row of problems.json."""
    row = dict(name=name, estimator=estimator, rows=x.shape[0], cols=x.shape[1], **params)
    arrays = dict(y=np.asarray(y, "<f8"))
    if sparse.issparse(x):
        arrays |= dict(x=x.data.astype("<f8"), indptr=x.indptr.astype("<u8"), indices=x.indices.astype("<u4"))
    else:
        arrays |= dict(x=np.ascontiguousarray(x, "<f8"))
    for kind, array in arrays.items():
        row[kind] = f"{number}.{kind}"
        array.tofile(folder / row[kind])
    return row


def ours(program, rows, folder, device):
    (folder / "problems.json").write_text(json.dumps(rows))
    done = subprocess.run([program, folder, device], stdout=subprocess.PIPE, text=True, check=True)
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def timed(fit, budget, most=15):
    """The least seconds of some fits, and the last one's coefficients."""
    least, begun, found, runs = math.inf, time.perf_counter(), None, 0
    while runs < most and (time.perf_counter() - begun < budget or (runs < 2 and least < budget)):
        start = time.perf_counter()
        model = fit()
        least = min(least, time.perf_counter() - start)
        found, runs = model, runs + 1
    return least, found


def value_of(problem):
    """The objective of coefficients and intercepts."""
    _, estimator, params, x, y = problem
    return lambda coef, intercept: objective(estimator, params, x, y, coef, intercept)


def peers_of(problem, best, quick):
    """Name, seconds and objective of every peer's fit; `best` is the objective of warpfuse."""
    name, estimator, params, x, y = problem
    found, value, budget = [], value_of(problem), 0.1 if quick else 0.3
    near = set()
    for label, fit, weights in fits(estimator, params, x, y):
        solver = label.rpartition(" ")[0]
        if quick and (solver in near or solver == "saga" and sparse.issparse(x)):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds, model = timed(fit, budget)
                found.append((label, seconds, value(*weights(model))))
            if found[-1][2] - best <= CLOSE * abs(best):
                near.add(solver)
        except Exception as error:  # A peer that refuses or fails is no peer.
            print(f"{name}: {label} is left out: {error}", file=sys.stderr)
    return found


def compare(problem, line, found):
    name, estimator, params, x, _ = problem
    value = value_of(problem)
    record = dict(family="everyday", case=name, estimator=estimator, params=params, rows=x.shape[0], cols=x.shape[1])
    if "failed" in line:
        return record | dict(failed=line["failed"])
    own = value(np.array(line["coef"]), np.array(line["intercept"]))
    best = min([own] + [f for _, _, f in found if np.isfinite(f)])
    scale = max(abs(best), 1e-9 * abs(value(np.zeros_like(line["coef"]), np.zeros_like(line["intercept"]))))
    off = lambda f: (f - best) / scale if scale > 0 else 0.0
    near = {label: seconds for label, seconds, f in found if off(f) <= NEAR}
    peers = {label: dict(seconds=seconds, gap=off(f)) for label, seconds, f in found}
    keys = ["solver", "reason", "n_iter", "inner", "convergence", "ratio"]
    record |= dict(seconds=line["seconds"], gap=off(own), peers=peers, **{key: line.get(key) for key in keys})
    record["duality_gap"] = line.get("gap")
    record["fastest"] = min(near, key=near.get, default=None)
    record["ratio_to_fastest"] = line["seconds"] / min(near.values()) if near else None
    return record


def shown(record):
    if "failed" in record:
        return f"{record['case']:34} FAILED {record['failed']}"
    ratio = record["ratio_to_fastest"]
    against = "no peer near" if ratio is None else f"{1 / ratio:8.2f} x {record['fastest']}"
    ending = f"{record['convergence']}, gap {record['gap']:.1e}, {record['solver']}, {record['n_iter']} iterations"
    return f"{record['case']:34} {1e3 * record['seconds']:9.2f} ms  {against:38} {ending}"


def summary(records):
    ratios = [r["ratio_to_fastest"] for r in records if r.get("ratio_to_fastest")]
    mean = math.exp(-np.mean(np.log(ratios)))
    lost = [r["case"] for r in records if (r.get("ratio_to_fastest") or 0) > 1.2]
    far = [r["case"] for r in records if r.get("gap", 1) > NEAR]
    lies = [r["case"] for r in records if r.get("gap", 0) > NEAR and r.get("convergence") == "converged"]
    print(f"{len(records)} problems, {mean:.2f} x the fastest peer in the geometric mean")
    print(f"slower than 1.2 x the fastest peer: {lost}")
    print(f"objective further than {NEAR} from the best known: {far}; of those converged: {lies}")


def main():
    arguments = argparse.ArgumentParser(description="Everyday problems beside scikit-learn and others.")
    arguments.add_argument("program", type=Path)
    arguments.add_argument("out")
    arguments.add_argument("wanted", nargs="?", default="", help="part of the names of the problems")
    arguments.add_argument("--device", default="cpu", choices=["cpu", "auto"])
    arguments.add_argument("--beside", metavar="FILE", help="fits on the first GPU, beside the same runs of the peers")
    arguments.add_argument("--quick", action="store_true", help="without peers that cannot be the fastest")
    given = arguments.parse_args()
    outs = {given.device: given.out} | ({"auto": given.beside} if given.beside else {})
    problems = [problem for problem in everything() if given.wanted in problem[0]]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [write(folder, number, *problem) for number, problem in enumerate(problems)]
        lines = {device: ours(given.program.resolve(), rows, folder, device) for device in outs}
    shared = dict(commit=commit(), date=time.strftime("%FT%TZ", time.gmtime()))
    records, files = {device: [] for device in outs}, {device: open(out, "w") for device, out in outs.items()}
    for problem in problems:
        own = [line for line in (lines[device][problem[0]] for device in outs) if "failed" not in line]
        best = min((value_of(problem)(np.array(line["coef"]), np.array(line["intercept"])) for line in own), default=math.nan)
        found = peers_of(problem, best, given.quick)
        for device, file in files.items():
            record = compare(problem, lines[device][problem[0]], found) | dict(device=machine(device)) | shared
            records[device].append(record)
            print(f"{device:5}" if given.beside else "", shown(record), flush=True)
            print(json.dumps(record), file=file, flush=True)
    for device in outs:
        print(machine(device))
        summary(records[device])


def commit():
    if name := os.environ.get("COMMIT"):
        return name
    found = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], stdout=subprocess.PIPE, text=True)
    return found.stdout.strip()


def machine(device):
    """What warpfuse fits on, and the processor with the cores it may use."""
    own = "" if device == "cpu" else f"{gpu()} beside "
    return f"{own}{processor()}, {len(os.sched_getaffinity(0))} cores"


def gpu():
    names = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], stdout=subprocess.PIPE, text=True)
    return names.stdout.splitlines()[0].strip()


def processor():
    try:
        names = [line for line in open("/proc/cpuinfo") if line.startswith("model name")]
        return names[0].split(":")[1].strip()
    except (OSError, IndexError):
        return platform.processor()


if __name__ == "__main__":
    main()
