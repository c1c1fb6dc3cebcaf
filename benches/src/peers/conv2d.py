"""Dense peers of sparse_conv: cuDNN through PyTorch, one JSON object a line.

Medians of 21 samples, each of calls that follow each other for about 2 ms, like the benches of Rust. Run in the same
session on the same GPU: python3 conv2d.py [batch ...]
"""

import json
import statistics
import sys

import torch

SOURCE = (512, 512, 32, 3)
LAYERS = [
    (64, 64, 56, 3), (128, 128, 28, 3), (256, 256, 14, 3), (512, 512, 7, 3),
    (64, 64, 224, 3), (128, 128, 112, 3), (256, 256, 56, 3), (512, 512, 28, 3), (512, 512, 14, 3),
    (64, 256, 56, 1), (256, 64, 56, 1), (512, 128, 28, 1), (1024, 256, 14, 1), (2048, 512, 7, 1),
]


def median_us(call):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(5):
        call()
    start.record()
    call()
    end.record()
    end.synchronize()
    calls = max(1, min(64, int(2.0 / max(start.elapsed_time(end), 1e-3))))
    samples = []
    for _ in range(21):
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e3 / calls)
    return statistics.median(samples)


def measure(batch, layer, pooled):
    channels, filters, side, kernel = layer
    for name, dtype, tf32 in [
        ("f32", torch.float32, False), ("tf32", torch.float32, True),
        ("f16", torch.float16, False), ("bf16", torch.bfloat16, False),
    ]:
        torch.backends.cudnn.allow_tf32 = tf32
        best = {}
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(batch, channels, side, side, device="cuda", dtype=dtype).to(memory_format=layout)
            w = torch.randn(filters, channels, kernel, kernel, device="cuda", dtype=dtype).to(memory_format=layout)
            conv = lambda: torch.nn.functional.conv2d(x, w, padding=kernel // 2)
            both = lambda: torch.nn.functional.max_pool2d(conv(), 2)
            best["us"] = min(best.get("us", 1e9), median_us(conv))
            if pooled:
                best["with_pooling_us"] = min(best.get("with_pooling_us", 1e9), median_us(both))
        print(json.dumps({"peer": "cudnn", "numbers": name, "batch": batch, "layer": layer, **best}), flush=True)


torch.backends.cudnn.benchmark = True
measure(1, SOURCE, True)
for batch in map(int, sys.argv[1:]):
    for layer in LAYERS:
        measure(batch, layer, False)
