#!/usr/bin/python3
"""The delta rule in torch, one thread, as bench/delta asks for it: for each shape a line
`D HEADS LOOP CHUNKWISE`, seconds a pair of all heads, token by token and in chunks of 64 (the UT
transform: Yang et al. 2024, arXiv 2406.06484). The two must agree."""
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(1)
PAIRS, CHUNK = 256, 64


def loop(k, v, S):
    for t in range(k.shape[1]):
        e = v[:, t] - torch.einsum("hij,hi->hj", S, k[:, t])
        S = S + k[:, t, :, None] * e[:, None, :]
    return S


def chunkwise(k, v, S):
    eye = torch.eye(CHUNK)
    for c in range(0, k.shape[1], CHUNK):
        K, V = k[:, c:c + CHUNK], v[:, c:c + CHUNK]
        A = (K @ K.transpose(1, 2)).tril(-1)
        U = torch.linalg.solve_triangular(A + eye, V - K @ S, upper=False, unitriangular=True)
        S = S + K.transpose(1, 2) @ U
    return S


def seconds(f, *args):
    f(*args)
    best = float("inf")
    for _ in range(3):
        start = time.thread_time()
        f(*args)
        best = min(best, time.thread_time() - start)
    return best / PAIRS


with torch.no_grad():
    for d in (32, 64, 128, 256):
        for heads in (1, 4, 8, 16):
            k = torch.nn.functional.normalize(torch.randn(heads, PAIRS, d), dim=-1)
            v, S = torch.randn(heads, PAIRS, d), torch.zeros(heads, d, d)
            assert torch.allclose(loop(k, v, S), chunkwise(k, v, S), atol=1e-3)
            print(d, heads, seconds(loop, k, v, S), seconds(chunkwise, k, v, S), flush=True)
