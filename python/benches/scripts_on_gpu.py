"""The ten scripts of the tests with and without ``python -m warpfuse``, every fit on a GPU: the same scores to 1e-3.

    python scripts_on_gpu.py RESULTS.jsonl
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"


def scores(driver, scripts, *how):
    environment = {**os.environ, "WARPFUSE_DEVICE": "cuda"}
    command = [sys.executable, *how, driver, *scripts]
    end = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    if end.returncode:
        raise SystemExit(end.stderr)
    return json.loads(end.stdout.splitlines()[-1])


def main(path):
    program = (TESTS / "test_scripts.py").read_text().split('DRIVER = """')[1].split('"""')[0]
    scripts = sorted(str(script) for script in (TESTS / "scripts").glob("*.py"))
    with tempfile.NamedTemporaryFile("w", suffix=".py") as driver:
        driver.write(program)
        driver.flush()
        plain, accelerated = scores(driver.name, scripts), scores(driver.name, scripts, "-m", "warpfuse")
    with open(path, "w") as out:
        for script in scripts:
            pairs = zip(map(float, plain[script]), map(float, accelerated[script]), strict=True)
            gaps = [abs(a - b) for a, b in pairs]
            line = {"script": Path(script).stem, "scores": len(gaps), "gap": max(gaps), "ok": max(gaps) <= 1e-3}
            out.write(json.dumps(line) + "\n")
        out.write(json.dumps({"served": accelerated["served"]}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
