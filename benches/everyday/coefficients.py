"""How far coefficients are from those of the minimum, where that is unique.

    python benches/everyday/coefficients.py target/release/everyday benches/everyday/results/coefficients.jsonl [FILTER] [--device auto]

Every problem is fitted at the default tolerance and at 1e-12. `off` is the greatest difference of a coefficient between the
two, over the greatest coefficient. The minimum is unique where the columns (beside the intercept) are independent or a ridge
makes it so; `condition` is that of the columns. Nothing is timed: other programs may run beside it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parent))
from everyday import commit, machine, write  # noqa: E402
from problems import everything  # noqa: E402

TIGHT = 1e-12
NEAR = 1e-5
MOST = 3000


def fitted(program, device, folder, rows, **more):
    (folder / "problems.json").write_text(json.dumps([row | more for row in rows]))
    done = subprocess.run([program, folder, device], stdout=subprocess.PIPE, text=True, check=True)
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


def condition(x):
    """Of the columns beside an intercept; infinite where they depend on each other, or are too many to find out."""
    if min(x.shape) > MOST:
        return np.inf
    dense = x.toarray() if sparse.issparse(x) else np.asarray(x)
    if dense.shape[1] >= dense.shape[0]:
        return np.inf
    values = np.linalg.svd(dense - dense.mean(0), compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 1e-13 * values[0] else np.inf


def has_ridge(estimator, params):
    kinds = {"ridge": True, "enet": True, "svc": True, "svr": True, "kernel": True}
    of_logreg = params.get("penalty") in ("l2", "elasticnet")
    return kinds.get(estimator) or estimator == "logreg" and of_logreg or estimator == "glm" and params["alpha"] > 0


def main():
    arguments = argparse.ArgumentParser(description="Coefficients beside those of the minimum.")
    arguments.add_argument("program", type=Path)
    arguments.add_argument("out")
    arguments.add_argument("wanted", nargs="?", default="", help="part of the names of the problems")
    arguments.add_argument("--device", default="cpu", choices=["cpu", "auto"])
    given = arguments.parse_args()
    program, device, out = given.program.resolve(), given.device, given.out
    problems = [problem for problem in everything() if given.wanted in problem[0]]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        rows = [write(folder, number, *problem) for number, problem in enumerate(problems)]
        usual, tight = fitted(program, device, folder, rows), fitted(program, device, folder, rows, tol=TIGHT)
    far = []
    with open(out, "w") as file:
        for name, estimator, params, x, _ in problems:
            found, best = (np.array(line[name]["coef"]) for line in (usual, tight))
            off = float(np.abs(found - best).max() / max(np.abs(best).max(), 1e-300))
            ridge = bool(has_ridge(estimator, params))
            cond = None if ridge else condition(x)
            unique = ridge or np.isfinite(cond)
            record = dict(family="everyday", case=name, estimator=estimator, params=params, off=off, unique=bool(unique))
            record |= dict(condition=cond if cond is None or np.isfinite(cond) else None, solver=usual[name]["solver"])
            record |= dict(convergence=[line[name]["convergence"] for line in (usual, tight)])
            record |= dict(device=machine(device), commit=commit(), date=time.strftime("%FT%TZ", time.gmtime()))
            print(f"{name:34} {off:.1e} {'unique' if unique else 'not unique'} {record['solver']} {record['convergence']}", flush=True)
            print(json.dumps(record), file=file, flush=True)
            far += [name] if unique and not off <= NEAR else []
    print(f"{len(problems)} problems; unique coefficients further than {NEAR} away: {far}")


if __name__ == "__main__":
    main()
