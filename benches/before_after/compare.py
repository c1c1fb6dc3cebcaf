"""Benchmarks of two commits beside each other, as `run.sh` leaves them: medians of the rounds, and how far they spread.

    python compare.py OUT

writes OUT/before_after.jsonl, one case a line, and prints new over old.
"""

import json
import statistics
import sys
from pathlib import Path


def runs_of(out):
    """Lines of every case, by which program wrote them."""
    found = {}
    for path in sorted(out.glob("raw/*/*/*/*/*.jsonl")):
        which = path.relative_to(out).parts[2]
        for text in path.read_text().splitlines():
            line = json.loads(text)
            case = json.dumps([line["family"], line["case"], line["dtype"]])
            found.setdefault(case, {"old": [], "new": []})[which].append(line)
    return found


def summary(runs):
    """What the rounds of one program say of a case."""
    times = [run["median_us"] for run in runs if "median_us" in run]
    return {
        "commit": runs[0]["commit"] if runs else None,
        "variants": sorted({run.get("variant") or run["failed"] for run in runs}),
        "median_us": statistics.median(times) if times else None,
        "medians_us": times,
        "min_us": min((run["min_us"] for run in runs if "min_us" in run), default=None),
    }


def main(out):
    with (out / "before_after.jsonl").open("w") as file:
        for case, runs in sorted(runs_of(out).items()):
            family, about, dtype = json.loads(case)
            of = {which: summary(lines) for which, lines in runs.items()}
            old, new = of["old"]["median_us"], of["new"]["median_us"]
            ratio = new / old if old and new else None
            some = (runs["new"] or runs["old"])[0]
            line = {"family": family, "case": about, "dtype": dtype, "new_over_old": ratio, **of}
            line.update({key: some[key] for key in ("device", "driver", "date") if key in some})
            file.write(json.dumps(line) + "\n")
            name = "-".join(str(value) for key, value in about.items() if key != "seed")
            same = "" if of["old"]["variants"] == of["new"]["variants"] else f"{of['old']['variants']} -> {of['new']['variants']}"
            print(f"{family:10} {name:56} {dtype} {ratio and f'{ratio:.4f}'} {same}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
