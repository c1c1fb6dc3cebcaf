"""Peers of qr: torch.geqrf (cuSOLVER, looped or batched as PyTorch likes) and cuBLAS geqrfBatched, one JSON object a line.

Medians of up to 11 samples after a warm-up, by events; R, V and tau, without T. Run in the same session on the same GPU:
python3 qr.py [f64]
"""

import ctypes
import json
import statistics
import sys

import torch

SIZES = [
    (1_000_000, 16, 16), (100_000, 32, 32), (10_000, 64, 64), (2_000, 128, 128), (1_000, 256, 256), (640, 512, 512),
    (60, 1024, 1024), (8, 2048, 2048), (2, 4096, 4096), (1_000, 512, 32), (4_000, 32, 128),
]


def median_us(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    call()
    samples = []
    for _ in range(11):
        start.record()
        call()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3)
        if sum(samples) > 3e6:
            break
    return statistics.median(samples)


def cublas():
    for name in ("libcublas.so.13", "libcublas.so.12", "libcublas.so"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        handle = ctypes.c_void_p()
        if library.cublasCreate_v2(ctypes.byref(handle)) == 0:
            library.cublasSetStream_v2(handle, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            return library, handle
    return None


def batched(library, handle, a):
    count, cols, rows = a.shape  # column-major: each matrix is transposed
    least = min(rows, cols)
    tau = torch.empty(count, least, device="cuda", dtype=a.dtype)
    work = a.clone()

    def pointers(x):
        step = x[0].numel() * x.element_size()
        return torch.arange(count, device="cuda", dtype=torch.int64) * step + x.data_ptr()

    to_a, to_tau = pointers(work), pointers(tau)
    name = "cublasSgeqrfBatched" if a.dtype == torch.float32 else "cublasDgeqrfBatched"
    geqrf = getattr(library, name)
    info = ctypes.c_int(0)

    def call():
        work.copy_(a)
        status = geqrf(handle, ctypes.c_int(rows), ctypes.c_int(cols), ctypes.c_void_p(to_a.data_ptr()),
                       ctypes.c_int(rows), ctypes.c_void_p(to_tau.data_ptr()), ctypes.byref(info), ctypes.c_int(count))
        assert status == 0 and info.value == 0, (status, info.value)

    with_copy = median_us(call)
    return with_copy - median_us(lambda: work.copy_(a))


def measure(dtype, sizes):
    library = cublas()
    for count, rows, cols in sizes:
        line = {"peer": "qr", "dtype": str(dtype), "count": count, "rows": rows, "cols": cols}
        a = torch.rand(count, cols, rows, device="cuda", dtype=dtype) - 0.5
        if library:
            line["cublas_geqrf_batched_us"] = batched(*library, a)
        line["torch_geqrf_us"] = median_us(lambda: torch.geqrf(a.mT))
        if rows * cols * count <= 1 << 27:
            line["torch_qr_us"] = median_us(lambda: torch.linalg.qr(a.mT))
        print(json.dumps(line), flush=True)
        del a
        torch.cuda.empty_cache()


measure(torch.float64 if "f64" in sys.argv[1:] else torch.float32, SIZES)
