"""Arrays of CuPy and PyTorch on a real GPU: right results, X never copied, bytes that crossed counted, streams in order.

    python gpu_arrays.py RESULTS.jsonl

Each line of the results is a check; a failed one has ``"ok": false``. The program then ends with 1.
"""

import gc
import json
import sys
import time
import traceback

import numpy as np
from scipy import sparse

import warpfuse

ROWS, DENSE_COLS, SPARSE_COLS, PER_ROW = 200_000, 64, 20_000, 20


def memory():
    return warpfuse.memory("cuda:0")


def libraries():
    """The libraries that are installed, each with what makes an array and a CSR matrix on the GPU of the host's."""
    found = {}
    try:
        import cupy
        from cupyx.scipy import sparse as of_cupy

        found["cupy"] = (cupy.asarray, of_cupy.csr_matrix, lambda array: isinstance(array, cupy.ndarray))
    except ImportError as error:
        print("no CuPy:", error)
    try:
        import torch

        def csr(S):
            parts = (torch.as_tensor(a, device="cuda") for a in (S.indptr, S.indices, S.data))
            return torch.sparse_csr_tensor(*parts, size=S.shape)

        found["torch"] = (
            lambda array: torch.as_tensor(array, device="cuda"),
            csr,
            lambda array: isinstance(array, torch.Tensor) and array.is_cuda,
        )
    except ImportError as error:
        print("no PyTorch:", error)
    return found


def host_data(dtype):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((ROWS, DENSE_COLS)).astype(dtype)
    indices = np.sort(rng.integers(0, SPARSE_COLS - PER_ROW, (ROWS, PER_ROW)), axis=1) + np.arange(PER_ROW)
    parts = (rng.standard_normal(ROWS * PER_ROW).astype(dtype), indices.ravel().astype(np.int32))
    S = sparse.csr_matrix((*parts, np.arange(0, ROWS * PER_ROW + 1, PER_ROW, dtype=np.int32)), shape=(ROWS, SPARSE_COLS))
    return X, S, rng


def bytes_of(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse.issparse(X) else X.nbytes


def host(array):
    return warpfuse._lent.to_host(array)


def check_fits(name, of_array, of_csr, is_there, dtype):
    """Fits and predictions of dense and sparse X: what crossed, in parts of X."""
    for form, X in zip(("dense", "csr"), host_data(dtype)[:2], strict=True):
        w = np.random.default_rng(2).standard_normal(X.shape[1])
        y = (X @ w > 0).astype(np.int64)
        there = of_array(X) if form == "dense" else of_csr(X)
        there_y = of_array(y)
        model = warpfuse.LogisticRegression(C=1e-3)
        model.fit(there, there_y)
        # The second time nothing is loaded any more.
        before, start = memory(), time.perf_counter()
        model.fit(there, there_y)
        seconds, after = time.perf_counter() - start, memory()
        sent, received = (after[way] - before[way] for way in ("sent_bytes", "received_bytes"))
        expected = warpfuse.LogisticRegression(C=1e-3).fit(X, y)
        distance = float(np.abs(host(model.coef_) - expected.coef_).max() / np.abs(expected.coef_).max())
        before = memory()
        shares = model.predict_proba(there)
        after = memory()
        of_predict = [after[way] - before[way] for way in ("sent_bytes", "received_bytes")]
        gap = float(np.abs(host(shares) - expected.predict_proba(X)).max())
        yield {
            "check": f"{name} {form} {np.dtype(dtype).name}",
            "ok": distance < (2e-3 if dtype == np.float32 else 1e-6)
            and gap < (1e-3 if dtype == np.float32 else 1e-6)
            and is_there(model.coef_)
            and is_there(shares)
            # Codes and weights of rows, vectors of columns: X itself would be all of it.
            and sent < 20 * X.shape[0] + 400 * X.shape[1]
            and sum(of_predict) < 1024,
            "bytes_of_X": bytes_of(X),
            "sent_in_fit": sent,
            "received_in_fit": received,
            "sent_and_received_in_predict_proba": of_predict,
            "distance_of_coefficients": distance,
            "gap_of_probabilities": gap,
            "fit_seconds": seconds,
            "lent_bytes_after": after["lent_bytes"],
        }


def check_products(name, of_array, of_csr, is_there):
    """Products of vectors that lie there: nothing crosses."""
    for form, X in zip(("dense", "csr"), host_data(np.float32)[:2], strict=True):
        there = of_array(X) if form == "dense" else of_csr(X)
        placed = warpfuse.Matrix(there)
        lent = memory()["lent_bytes"]
        y = np.random.default_rng(3).standard_normal(X.shape[1]).astype(np.float32)
        v = of_array(y)
        placed @ v
        before = memory()
        found = placed.fused(v)
        after = memory()
        crossed = [after[way] - before[way] for way in ("sent_bytes", "received_bytes")]
        del there
        gc.collect()
        again = placed @ v
        expected = X.T @ (X @ y)
        distance = float(np.abs(host(found) - expected).max() / np.abs(expected).max())
        yield {
            "check": f"{name} {form} products",
            "ok": crossed == [0, 0] and distance < 1e-4 and is_there(found)
            and bool(np.allclose(host(again), X @ y, rtol=1e-3, atol=1e-3)),
            "crossed": crossed,
            "distance": distance,
            "lent_bytes": lent,
            "bytes_of_X": bytes_of(X),
        }


def check_others(name, of_array, of_csr, is_there):
    """Decompositions, kernels and searches: results there, X not copied."""
    X, S, rng = host_data(np.float32)
    X, S = X[:20_000] * np.linspace(3.0, 0.1, X.shape[1], dtype=np.float32), S[:20_000]
    y = X @ rng.standard_normal(X.shape[1]).astype(np.float32)
    y += rng.standard_normal(len(y)).astype(np.float32)
    few, labels = X[:2_000, :8], (y > 0).astype(np.int64)
    logistic = warpfuse.LogisticRegressionCV(
        Cs=[1e-4, 1e-2], cv=3, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
    )
    cases = [
        ("PCA", warpfuse.PCA(3, random_state=0), X, None, "components_"),
        ("TruncatedSVD", warpfuse.TruncatedSVD(3, random_state=0), X, None, "components_"),
        ("TruncatedSVD of CSR", warpfuse.TruncatedSVD(2, random_state=0), S, None, "singular_values_"),
        ("KernelRidge", warpfuse.KernelRidge(kernel="rbf", alpha=1.0), few, y[:2_000], "dual_coef_"),
        ("RidgeCV", warpfuse.RidgeCV(alphas=[1e-2, 1e2], cv=3), X, y, "coef_"),
        ("LogisticRegressionCV", logistic, X, labels, "coef_"),
    ]
    for what, model, given, target, attribute in cases:
        expected = host(getattr(model.fit(given, target), attribute))
        there = of_csr(given) if sparse.issparse(given) else of_array(given)
        there_y = None if target is None else of_array(target)
        before = memory()
        model.fit(there, there_y)
        after = memory()
        found = getattr(model, attribute)
        sent = after["sent_bytes"] - before["sent_bytes"]
        distance = float(np.abs(host(found) - expected).max() / np.abs(expected).max())
        shown = model.transform(there) if hasattr(model, "transform") else model.predict(there)
        yield {
            "check": f"{name}: {what}",
            "ok": is_there(found) and is_there(shown) and distance < 1e-2,
            "distance": distance,
            "sent_in_fit": sent,
            "bytes_of_X": bytes_of(given),
        }


def check_streams():
    """X that a slow stream is still to write is waited for."""
    X = host_data(np.float32)[0]
    y = np.random.default_rng(3).standard_normal(X.shape[1]).astype(np.float32)
    expected = X @ y
    try:
        import torch

        source, v = torch.as_tensor(X, device="cuda"), torch.as_tensor(y, device="cuda")
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            there = torch.zeros_like(source)
            torch.cuda._sleep(1_000_000_000)
            there.copy_(source)
            start = time.perf_counter()
            found = warpfuse.Matrix(there) @ v
            waited = time.perf_counter() - start
        yield {"check": "stream of torch", "ok": bool(np.allclose(host(found), expected, rtol=1e-3, atol=1e-3)), "waited": waited}
    except ImportError:
        pass
    try:
        import cupy

        source, v = cupy.asarray(X), cupy.asarray(y)
        slow = cupy.RawKernel(
            'extern "C" __global__ void slow() { long long t = clock64(); while (clock64() - t < 1000000000LL); }', "slow"
        )
        slow((1,), (1,), ())
        cupy.cuda.Device().synchronize()
        for by, wrap in (("DLPack", lambda array: array), ("__cuda_array_interface__", ByInterface)):
            with cupy.cuda.Stream(non_blocking=True):
                there = cupy.zeros_like(source)
                slow((1,), (1,), ())
                cupy.copyto(there, source)
                device = warpfuse._config.open_device("cuda:0")
                start = time.perf_counter()
                lent = warpfuse._native.DeviceArray(wrap(there), device)
                placed = warpfuse._native.Matrix(lent, device)
                of_y = warpfuse._native.DeviceArray(v, device)
                found = placed.product("forward", of_y, None, None, 1.0, 0.0)
                waited = time.perf_counter() - start
            ok = bool(np.allclose(found.numpy(), expected, rtol=1e-3, atol=1e-3))
            yield {"check": f"stream of cupy by {by}", "ok": ok, "waited": waited}
    except ImportError:
        pass


class ByInterface:
    """An array that offers nothing but ``__cuda_array_interface__``."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def check_refusals(name, of_array):
    X, _, _ = host_data(np.float32)
    there, y = of_array(X[:1000]), np.arange(1000.0)
    for what, work, words in [
        ("host alone", lambda: warpfuse.Ridge(positive=True).fit(there, y), "on the CPU"),
        ("wrong device", lambda: _on_cpu(there, y), "lies on cuda:0"),
        ("an estimator of the host", lambda: warpfuse.LassoCV(cv=3).fit(there, y), "takes arrays of the host"),
    ]:
        try:
            work()
            said = "nothing"
        except (TypeError, ValueError) as error:
            said = str(error)
        yield {"check": f"{name}: {what}", "ok": words in said, "said": said}
    found = warpfuse.Ridge().fit(of_array(np.asfortranarray(X[:1000])), y).coef_
    expected = warpfuse.Ridge().fit(X[:1000], y).coef_
    ok = bool(np.allclose(host(found), expected, rtol=1e-2, atol=1e-2 * np.abs(expected).max()))
    yield {"check": f"{name}: Fortran order", "ok": ok}


def _on_cpu(X, y):
    with warpfuse.config_context(device="cpu"):
        return warpfuse.Ridge().fit(X, y)


def checks():
    for name, (of_array, of_csr, is_there) in libraries().items():
        for dtype in (np.float32, np.float64):
            yield lambda a=(name, of_array, of_csr, is_there, dtype): check_fits(*a)
        yield lambda a=(name, of_array, of_csr, is_there): check_products(*a)
        yield lambda a=(name, of_array, of_csr, is_there): check_others(*a)
        yield lambda a=(name, of_array): check_refusals(*a)
    yield check_streams


def main(path):
    failed = 0
    with open(path, "w") as out:
        for check in checks():
            try:
                results = list(check())
            except Exception:
                results = [{"check": "a group of checks", "ok": False, "error": traceback.format_exc()}]
            for result in results:
                failed += not result["ok"]
                print(json.dumps(result))
                out.write(json.dumps(result) + "\n")
                out.flush()
    print("failed:", failed)
    return 1 if failed else 0


if __name__ == "__main__":
    warpfuse.set_config(fallback="error")
    raise SystemExit(main(sys.argv[1]))
