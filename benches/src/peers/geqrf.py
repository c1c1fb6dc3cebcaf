"""Peers of qr without PyTorch: cuSOLVER's geqrf, matrix after matrix in 1 to 8 streams, and cuBLAS' geqrfBatched; a JSON object a line.

Medians of up to 11 samples after a warm-up, by events; R, V and tau, without T; A is put back before each sample, untimed. Run in
the same session on the same GPU, where the linker finds libcudart, libcublas and libcusolver:
python3 geqrf.py [f64]
"""

import ctypes
import json
import random
import statistics
import sys
from array import array

SIZES = [(640, 512, 512), (60, 1024, 1024), (8, 2048, 2048), (2, 4096, 4096), (1_000, 512, 32), (64, 1024, 32), (64, 1024, 256)]
SAMPLES, LONGEST_MS = 11, 3e3
# cuBLAS takes seconds a batch beyond.
MOST_BATCHED = 512
BYTES = {"f32": 4, "f64": 8}


def library(name):
    for version in ("", ".13", ".12", ".11"):
        try:
            return ctypes.CDLL(f"lib{name}.so{version}")
        except OSError:
            continue
    sys.exit(f"expected lib{name} where the linker looks, found none")


CUDA, BLAS, SOLVER = library("cudart"), library("cublas"), library("cusolver")


def ok(status, call):
    if status:
        sys.exit(f"{call}: status {status}")


def allocated(size):
    place = ctypes.c_void_p()
    ok(CUDA.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(size)), "cudaMalloc")
    return place


def numbers(count, dtype):
    """Numbers of a seed, the first million over and over with another scale, as making all of them takes long."""
    source = random.Random(60)
    some = array("f" if dtype == "f32" else "d", (source.gauss(0, 1) for _ in range(1_000_003)))
    return (some * (count // len(some) + 1))[:count]


def new(make, name):
    made = ctypes.c_void_p()
    ok(make(ctypes.byref(made)), name)
    return made


class Lane:
    """A stream with a handle of cuSOLVER and its workspace."""

    def __init__(self, dtype, rows, cols):
        letter = "S" if dtype == "f32" else "D"
        self.stream = new(CUDA.cudaStreamCreate, "cudaStreamCreate")
        self.handle = new(SOLVER.cusolverDnCreate, "cusolverDnCreate")
        ok(SOLVER.cusolverDnSetStream(self.handle, self.stream), "cusolverDnSetStream")
        words = ctypes.c_int()
        size = getattr(SOLVER, f"cusolverDn{letter}geqrf_bufferSize")
        ok(size(self.handle, rows, cols, None, rows, ctypes.byref(words)), "geqrf_bufferSize")
        self.words, self.info = words.value, allocated(4)
        self.space = allocated(self.words * BYTES[dtype])
        self.geqrf = getattr(SOLVER, f"cusolverDn{letter}geqrf")
        self.done = new(CUDA.cudaEventCreate, "cudaEventCreate")

    def factor(self, rows, cols, a, tau):
        ok(
            self.geqrf(self.handle, rows, cols, a, rows, tau, self.space, self.words, self.info),
            "geqrf",
        )


def median_us(reset, call):
    start, end = (new(CUDA.cudaEventCreate, "cudaEventCreate") for _ in range(2))
    samples = []
    for number in range(SAMPLES + 1):
        reset()
        ok(CUDA.cudaDeviceSynchronize(), "cudaDeviceSynchronize")
        CUDA.cudaEventRecord(start, None)
        call(start)
        CUDA.cudaEventRecord(end, None)
        ok(CUDA.cudaEventSynchronize(end), "cudaEventSynchronize")
        taken = ctypes.c_float()
        CUDA.cudaEventElapsedTime(ctypes.byref(taken), start, end)
        if number:
            samples.append(taken.value * 1e3)
        if sum(samples) > LONGEST_MS * 1e3:
            break
    return statistics.median(samples)


def measured(count, rows, cols, dtype):
    size = BYTES[dtype]
    total = count * rows * cols * size
    host = numbers(count * rows * cols, dtype)
    given, a, tau = allocated(total), allocated(total), allocated(count * cols * size)
    address = ctypes.c_void_p(host.buffer_info()[0])
    ok(CUDA.cudaMemcpy(given, address, ctypes.c_size_t(total), 1), "cudaMemcpy")
    line = {"peer": "geqrf", "dtype": dtype, "count": count, "rows": rows, "cols": cols}

    def reset():
        ok(CUDA.cudaMemcpy(a, given, ctypes.c_size_t(total), 3), "cudaMemcpy")

    def place(matrix):
        return ctypes.c_void_p(a.value + matrix * rows * cols * size)

    def tau_of(matrix):
        return ctypes.c_void_p(tau.value + matrix * cols * size)

    for streams in (1, 2, 8):
        if streams > count:
            continue
        lanes = [Lane(dtype, rows, cols) for _ in range(streams)]

        def looped(start):
            for lane in lanes:
                CUDA.cudaStreamWaitEvent(lane.stream, start, 0)
            for matrix in range(count):
                lanes[matrix % streams].factor(rows, cols, place(matrix), tau_of(matrix))
            for lane in lanes:
                CUDA.cudaEventRecord(lane.done, lane.stream)
                CUDA.cudaStreamWaitEvent(None, lane.done, 0)

        line[f"cusolver_{streams}_streams_us"] = median_us(reset, looped)
    if rows <= MOST_BATCHED:
        line["cublas_geqrf_batched_us"] = batched((count, rows, cols, dtype), reset, (place, tau_of))
    for kept in (given, a, tau):
        CUDA.cudaFree(kept)
    return line


def batched(shape, reset, places):
    count, rows, cols, dtype = shape
    handle = new(BLAS.cublasCreate_v2, "cublasCreate")
    geqrf = getattr(BLAS, "cublasSgeqrfBatched" if dtype == "f32" else "cublasDgeqrfBatched")
    tables = []
    for place in places:
        table = array("Q", (place(matrix).value for matrix in range(count)))
        there = allocated(8 * count)
        address = ctypes.c_void_p(table.buffer_info()[0])
        ok(CUDA.cudaMemcpy(there, address, ctypes.c_size_t(8 * count), 1), "cudaMemcpy")
        tables.append(there)
    info = ctypes.c_int()

    def call(_):
        ok(geqrf(handle, rows, cols, tables[0], rows, tables[1], ctypes.byref(info), count), "geqrfBatched")

    return median_us(reset, call)


if __name__ == "__main__":
    for dtype in ["f64"] if "f64" in sys.argv else ["f32", "f64"]:
        for size in SIZES:
            print(json.dumps(measured(*size, dtype)), flush=True)
