"""Reading npy: warpfuse's time and memory beside NumPy's.

    python benches/everyday/npy.py target/release/warpfuse benches/everyday/results/npy.jsonl [MEGABYTES]

An array of f64, row by row and column by column, is in the page cache. NumPy reads it (`np.load`), maps and sums it
(`mmap_mode="r"`), or reads it and looks for values that are not finite, as scikit-learn does before a fit. warpfuse maps it and
checks that all values are finite: `read` of its phases. Seconds are the least of five runs, in turn; memory is the most of a
process that no file backs (RssAnon) beyond that of the same program on one row, sampled every millisecond.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from everyday import processor  # noqa: E402

NUMPY = {
    "load": "x = np.load(path)",
    "map and sum": "x = np.load(path, mmap_mode='r'); x.sum()",
    "load and check": "x = np.load(path); assert np.isfinite(x).all()",
}
SCRIPT = "import sys, time\nimport numpy as np\npath = sys.argv[1]\nbegun = time.perf_counter()\n{}\nprint(time.perf_counter() - begun)\n"


def anonymous(pid):
    """Bytes of a process that no file backs."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


def run(command):
    """What a program prints, and the most memory that it had."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    most = 0
    while process.poll() is None:
        most = max(most, anonymous(process.pid))
        time.sleep(0.001)
    text, errors = process.communicate()
    if process.returncode != 0:
        raise SystemExit(errors)
    return text, most


def ours(program, x, y):
    words = ["train", "ridge", x, "--target", y, "--solver", "conjugate-gradient", "--max-iter", "1", "--device", "cpu", "--json"]
    text, most = run([program, *words])
    return json.loads(text)["phases"]["read"]["seconds"], most


def theirs(what, x, _):
    text, most = run([sys.executable, "-c", SCRIPT.format(NUMPY[what]), x])
    return float(text), most


def main():
    program, out = sys.argv[1], sys.argv[2]
    megabytes = int(sys.argv[3]) if len(sys.argv) > 3 else 256
    rows, cols = megabytes * 2500, 50
    commit = subprocess.run(["git", "describe", "--always", "--abbrev=12"], stdout=subprocess.PIPE, text=True).stdout.strip()
    takers = {"warpfuse": lambda x, y: ours(program, x, y)}
    takers |= {f"numpy {what}": lambda x, y, what=what: theirs(what, x, y) for what in NUMPY}
    with tempfile.TemporaryDirectory() as folder, open(out, "w") as file:
        values = np.random.default_rng(1).normal(size=(rows, cols))
        for order in "CF":
            paths = [f"{folder}/{name}.npy" for name in ("x", "y", "row", "target")]
            np.save(paths[0], np.asarray(values, order=order))
            np.save(paths[1], values[:, 0] + 1)
            np.save(paths[2], np.asarray(values[:2], order=order))
            np.save(paths[3], values[:2, 0])
            base = {label: min(take(*paths[2:])[1] for _ in range(3)) for label, take in takers.items()}
            runs = {label: [] for label in takers}
            for _ in range(5):
                for label, take in takers.items():
                    runs[label].append(take(*paths[:2]))
            for label, found in runs.items():
                record = dict(family="npy", case=dict(rows=rows, cols=cols, order=order), what=label)
                record["seconds"] = min(seconds for seconds, _ in found)
                record["bytes"] = 8 * rows * cols
                record["memory_bytes"] = max(0, min(most for _, most in found) - base[label])
                record |= dict(device=processor(), commit=commit, date=time.strftime("%FT%TZ", time.gmtime()))
                print(label, order, f"{record['seconds']:.3f} s", f"{record['memory_bytes'] / record['bytes']:.2f} X")
                print(json.dumps(record), file=file, flush=True)


if __name__ == "__main__":
    main()
