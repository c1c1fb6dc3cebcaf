"""Everyday problems: warpfuse beside scikit-learn, liblinear and statsmodels on the same cores.

    cargo build --release -p warpfuse-benches --bin everyday
    python benches/everyday/everyday.py target/release/everyday benches/everyday/results/cpu.jsonl [FILTER] [--device auto]

With `--device auto` warpfuse fits on the first GPU, beside the same peers on the cores of its host.

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


def timed(fit, budget=0.3, most=15):
    """The least seconds of some fits, and the last one's coefficients."""
    least, begun, found, runs = math.inf, time.perf_counter(), None, 0
    while runs < most and (time.perf_counter() - begun < budget or (runs < 2 and least < budget)):
        start = time.perf_counter()
        model = fit()
        least = min(least, time.perf_counter() - start)
        found, runs = model, runs + 1
    return least, found


def compare(problem, line):
    name, estimator, params, x, y = problem
    value = lambda coef, intercept: objective(estimator, params, x, y, coef, intercept)
    record = dict(family="everyday", case=name, estimator=estimator, params=params, rows=x.shape[0], cols=x.shape[1])
    found = []
    for label, fit, weights in fits(estimator, params, x, y):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seconds, model = timed(fit)
                found.append((label, seconds, value(*weights(model))))
        except Exception as error:  # A peer that refuses or fails is no peer.
            print(f"{name}: {label} is left out: {error}", file=sys.stderr)
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
    given = arguments.parse_args()
    program, out, wanted = given.program.resolve(), given.out, given.wanted
    problems = [problem for problem in everything() if wanted in problem[0]]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [write(folder, number, *problem) for number, problem in enumerate(problems)]
        lines = ours(program, rows, folder, given.device)
    commit = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], stdout=subprocess.PIPE, text=True)
    shared = dict(device=machine(given.device), commit=commit.stdout.strip(), date=time.strftime("%FT%TZ", time.gmtime()))
    records = []
    with open(out, "w") as file:
        for problem in problems:
            record = compare(problem, lines[problem[0]]) | shared
            records.append(record)
            print(shown(record), flush=True)
            print(json.dumps(record), file=file, flush=True)
    summary(records)


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
