"""Fits that processes share, by ``mpirun``, against those of one process."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import warpfuse

SHARED = pathlib.Path(__file__).parent / "shared_fits.py"
LIBSVM = "".join(f"{(i * 7 % 11) / 4} 1:{i % 5} 3:{(i * i) % 7 + 0.5}\n" for i in range(40))

needs_mpirun = pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI or MPICH is not installed")


def run(processes, program, *arguments):
    """``mpirun`` of build machines: they work as root, have fewer processors than processes, and no network."""
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "WARPFUSE_GROUP_LIMIT": "60",
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
    }
    launcher = ["mpirun", "-n", str(processes)] if processes > 1 else []
    return subprocess.run(
        [*launcher, sys.executable, *program, *map(str, arguments)], env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "rows.svm"
    path.write_text(LIBSVM)
    return path


@pytest.fixture(scope="module")
def alone(file):
    found = run(1, [SHARED], file)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


@needs_mpirun
@pytest.mark.parametrize("processes", [2, 3])
def test_processes_learn_what_one_does(processes, file, alone):
    found = run(processes, [SHARED], file)
    assert found.returncode == 0, found.stderr
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("{")]
    learnt = json.loads(line)
    assert learnt.pop("size") == processes
    assert learnt.keys() == alone.keys() - {"size"}
    for name, values in learnt.items():
        for ours, theirs in zip(values, alone[name], strict=True):
            # Tolerances of 1e-10 and less leave differences far below.
            largest = np.max(np.abs(theirs))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * largest, err_msg=name)


@needs_mpirun
def test_an_exception_of_one_process_ends_all():
    program = (
        "import numpy as np, warpfuse\n"
        "with warpfuse.group() as members:\n"
        "    if members.rank == 1: raise KeyError('nobody knows')\n"
        "    try:\n"
        "        warpfuse.Ridge().fit(np.eye(9), np.arange(9.0))\n"
        "    except RuntimeError as error:\n"
        "        print(error)\n"
    )
    found = run(2, ["-c", program])
    assert found.returncode != 0
    assert "rank 1 failed: KeyError: 'nobody knows'" in found.stdout


@needs_mpirun
def test_what_needs_all_rows_is_refused():
    program = (
        "import numpy as np, warpfuse\n"
        "with warpfuse.group() as members:\n"
        "    try:\n"
        "        warpfuse.QuantileRegressor().fit(np.eye(9), np.arange(9.0))\n"
        "    except ValueError as error:\n"
        "        print(error)\n"
    )
    found = run(2, ["-c", program])
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("rows that several processes share") == 2


def test_a_process_by_itself_fits_alone():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 2.0, 4.0])
    with warpfuse.group() as members:
        assert (members.rank, members.size, members.is_first) == (0, 1, True)
        assert warpfuse.Ridge(alpha=2.0).fit(X, y).coef_ == pytest.approx([1.0])
        assert members.gather(["a", "bc"]).tolist() == ["a", "bc"]
        with pytest.raises(TypeError, match="numbers, truths or text"):
            members.gather([object()])
        with pytest.raises(RuntimeError, match="groups do not nest"), warpfuse.group():
            pass
        assert warpfuse.Ridge(alpha=2.0).fit(X, y).coef_ == pytest.approx([1.0])
    # After an exception, too, the block has been left.
    with pytest.raises(KeyError), warpfuse.group():
        raise KeyError("mine")
    with warpfuse.group() as members:
        assert members.size == 1
