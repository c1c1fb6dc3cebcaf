"""Trains the network of `pruned_layer.rs` on scikit-learn's 8 x 8 digits (UCI, Alpaydin and Kaynak, 1998), seeded.

Writes beside itself `digits_network.f32` (little-endian: filters 16 x 1 x 3 x 3 and bias, filters 32 x 16 x 3 x 3 and bias,
10 x 512 weights and bias) and `digits_test.u8` (297 images of 64 bytes, 0 to 16, then their labels).
"""

import pathlib

import numpy as np
from sklearn.datasets import load_digits

HERE = pathlib.Path(__file__).parent
EPOCHS, BATCH, RATE, MOMENTUM, DECAY = 40, 50, 0.05, 0.9, 5e-4


def columns(x):
    """Images x channels x rows x cols to images x (channels, 3, 3) x cells, padded by one."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [padded[:, :, r : r + 8, c : c + 8] for r in range(3) for c in range(3)]
    return np.stack(parts, 2).reshape(len(x), x.shape[1] * 9, 64)


def images_of(gradient, channels):
    """The transposed operation of `columns`."""
    parts = gradient.reshape(len(gradient), channels, 9, 8, 8)
    padded = np.zeros((len(gradient), channels, 10, 10), np.float32)
    for tap in range(9):
        r, c = divmod(tap, 3)
        padded[:, :, r : r + 8, c : c + 8] += parts[:, :, tap]
    return padded[:, :, 1:9, 1:9]


def forward(net, x):
    w1, b1, w2, b2, w3, b3 = net
    c1 = columns(x)
    a1 = np.maximum(np.einsum("fk,nkp->nfp", w1, c1, optimize=True) + b1[:, None], 0)
    c2 = columns(a1.reshape(-1, 16, 8, 8))
    a2 = np.maximum(np.einsum("fk,nkp->nfp", w2, c2, optimize=True) + b2[:, None], 0)
    windows = a2.reshape(-1, 32, 4, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(-1, 512, 4)
    pooled = windows.max(2)
    return (c1, a1, c2, a2, windows, pooled), pooled @ w3.T + b3


def gradients(net, x, labels):
    _, _, w2, _, w3, _ = net
    (c1, a1, c2, a2, windows, pooled), scores = forward(net, x)
    p = np.exp(scores - scores.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(x)), labels] -= 1
    p /= len(x)
    largest = np.eye(4, dtype=np.float32)[windows.argmax(2)]
    to_windows = (p @ w3)[:, :, None] * largest
    d2 = to_windows.reshape(-1, 32, 4, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(-1, 32, 64) * (a2 > 0)
    d1 = images_of(np.einsum("fk,nfp->nkp", w2, d2, optimize=True), 16).reshape(-1, 16, 64) * (a1 > 0)
    return [
        np.einsum("nfp,nkp->fk", d1, c1, optimize=True), d1.sum((0, 2)),
        np.einsum("nfp,nkp->fk", d2, c2, optimize=True), d2.sum((0, 2)),
        p.T @ pooled, p.sum(0),
    ]


def main():
    random = np.random.default_rng(1)
    data = load_digits()
    order = random.permutation(len(data.target))
    images, labels = data.images[order].astype(np.uint8), data.target[order].astype(np.uint8)
    x = (images / 16).astype(np.float32)[:, None]
    shapes = [(16, 9), (16,), (32, 144), (32,), (10, 512), (10,)]
    net = [(random.standard_normal(s) * np.sqrt(2 / s[-1]) if len(s) > 1 else np.zeros(s)).astype(np.float32) for s in shapes]
    speed = [np.zeros_like(w) for w in net]
    for epoch in range(EPOCHS):
        rate = RATE * (1 - epoch / EPOCHS)
        for batch in random.permutation(1500).reshape(-1, BATCH):
            for w, v, g in zip(net, speed, gradients(net, x[batch], labels[batch])):
                v *= MOMENTUM
                v -= rate * (g.astype(np.float32) + DECAY * w)
                w += v
    right = (forward(net, x[1500:])[1].argmax(1) == labels[1500:]).sum()
    print(f"{right} of {len(x) - 1500} test images are right")
    (HERE / "digits_network.f32").write_bytes(b"".join(w.astype("<f4").tobytes() for w in net))
    (HERE / "digits_test.u8").write_bytes(images[1500:].tobytes() + labels[1500:].tobytes())


main()
