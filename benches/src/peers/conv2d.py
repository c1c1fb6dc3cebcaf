"""Peers of sparse_conv in PyTorch, one JSON object a line, which the benchmark takes by `--peers FILE`.

cuDNN's dense convolution; cuBLAS's dense and cuSPARSE's sparse product over im2col in FP32, im2col inside. A peer stands
beside the types for which its numbers are exact; beside 16-bit integers, whose sums only FP64 holds, stands FP32.

Medians of 11 samples of replayed graphs, so that no time of Python counts. Run in the same session on the same GPU:
python3 conv2d.py [batch ...] > peers.jsonl
"""

import json
import statistics
import sys

import torch
import torch.nn.functional as F

SOURCE = (512, 512, 32, 3)
LAYERS = [
    (64, 64, 56, 3), (128, 128, 28, 3), (256, 256, 14, 3), (512, 512, 7, 3),
    (64, 64, 224, 3), (128, 128, 112, 3), (256, 256, 56, 3), (512, 512, 28, 3), (512, 512, 14, 3),
    (64, 256, 56, 1), (256, 64, 56, 1), (512, 128, 28, 1), (1024, 256, 14, 1), (2048, 512, 7, 1),
]
DENSITIES = [50, 100, 111, 200, 500]
# Numbers of cuDNN, and our types for which they are exact.
CUDNN = [
    ("cudnn_f32", torch.float32, False, ["f32", "i16", "i8", "f16"]),
    ("cudnn_tf32", torch.float32, True, ["i8", "f16"]),
    ("cudnn_f16", torch.float16, False, ["f16"]),
]
SAMPLES = 11
SAMPLE_MS = 2.0


def elapsed_ms(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def graph_of(call, calls):
    """Many calls as a graph; `None` where one cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(calls):
                call()
        return graph
    except RuntimeError:
        torch.cuda.synchronize()
        return None


def median_us(call):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    single = elapsed_ms(call)
    calls = max(1, min(64, int(SAMPLE_MS / max(single, 1e-3))))
    graph = graph_of(call, calls)
    many = graph.replay if graph else lambda: [call() for _ in range(calls)]
    many()
    samples = [elapsed_ms(many) * 1e3 / calls for _ in range(SAMPLES)]
    return statistics.median(samples)


def emit(batch, layer, works, dtypes, peers, permille=None):
    channels, filters, side, kernel = layer
    over = {"layout": "layer", "batch": batch, "channels": channels, "filters": filters, "side": side, "kernel": kernel}
    if permille is not None:
        over["permille"] = permille
    line = {"family": "sparse_conv", "over": over, "works": works, "dtypes": dtypes, "peers": peers}
    print(json.dumps(line), flush=True)


def cudnn(batch, layer, works, pooled):
    channels, filters, side, kernel = layer
    for name, dtype, tf32, dtypes in CUDNN:
        torch.backends.cudnn.allow_tf32 = tf32
        times = []
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(batch, channels, side, side, device="cuda", dtype=dtype).to(memory_format=layout)
            w = torch.randn(filters, channels, kernel, kernel, device="cuda", dtype=dtype).to(memory_format=layout)
            conv = lambda: F.conv2d(x, w, padding=kernel // 2)
            call = (lambda: F.max_pool2d(conv(), 2)) if pooled else conv
            times.append(median_us(call))
        emit(batch, layer, works, dtypes, {name: min(times)})


def columns_of(x, kernel):
    """im2col: channels and taps by images and outputs."""
    if kernel == 1:
        return x.transpose(0, 1).reshape(x.shape[1], -1)
    return F.unfold(x, kernel, padding=kernel // 2).transpose(0, 1).reshape(x.shape[1] * kernel * kernel, -1)


def lowered(batch, layer, works):
    channels, filters, side, kernel = layer
    torch.backends.cuda.matmul.allow_tf32 = False
    x = torch.randn(batch, channels, side, side, device="cuda")
    columns = columns_of(x, kernel).contiguous()
    im2col_us = median_us(lambda: columns_of(x, kernel).contiguous())
    weights = torch.randn(filters, columns.shape[0], device="cuda")
    cublas_us = median_us(lambda: weights @ columns)
    emit(batch, layer, works, ["f32", "i16"], {"cublas": cublas_us, "cublas_im2col": cublas_us + im2col_us})
    for permille in DENSITIES:
        kept = torch.rand_like(weights) < permille / 1000
        sparse = (weights * kept).to_sparse_csr()
        try:
            us = median_us(lambda: sparse @ columns)
        except RuntimeError as error:
            print(f"cusparse {batch} {layer} {permille}: {error}", file=sys.stderr)
            continue
        peers = {"cusparse": us, "cusparse_im2col": us + im2col_us}
        emit(batch, layer, works, ["f32", "i16"], peers, permille)


def main():
    torch.backends.cudnn.benchmark = True
    works = ["source_best", "source_direct", "source_staged", "source_tensor", "source_coo", "source_packed"]
    cudnn(1, SOURCE, works, True)
    for batch in map(int, sys.argv[1:]):
        for layer in LAYERS:
            cudnn(batch, layer, ["layer"], False)
            lowered(batch, layer, ["layer"])


main()
