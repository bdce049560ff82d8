#!/usr/bin/env python3
"""A Gated DeltaNet checkpoint by torch, with one thread, for bench/model to stand beside.

    model_torch.py CHECKPOINT TEXT LEARN STEPS

Learns LEARN bytes of TEXT with the projections of 2,048 tokens at once and the memory in chunks
of 64 (the rule written as a triangular system, Yang et al. 2412.06464), then STEPS bytes one by
one. Prints: seconds a token of the first, of the second, bits a token of the first."""
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

BLOCK, CHUNK = 2048, 64


def read_weights(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    weights = {}
    for name, t in header.items():
        if name == "__metadata__":
            continue
        raw = data[t["data_offsets"][0] : t["data_offsets"][1]]
        if t["dtype"] == "BF16":
            x = (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            x = np.frombuffer(raw, {"F32": "<f4", "F16": "<f2"}[t["dtype"]]).astype("<f4")
        weights[name] = torch.from_numpy(x.copy()).reshape(t["shape"])
    return weights


class Model:
    def __init__(self, path):
        with open(os.path.join(path, "config.json")) as f:
            self.config = c = json.load(f)
        if c.get("architecture") != "gated_deltanet":
            sys.exit("model_torch.py: only gated_deltanet")
        self.w = read_weights(os.path.join(path, "model.safetensors"))
        self.heads, self.d = c["num_heads"], c["head_dim"]
        self.d_v = int(self.d * c.get("expand_v", 2.0))
        self.eps, self.tail = c.get("norm_eps", 1e-5), c.get("conv_size", 4) - 1
        self.layers = range(c["num_hidden_layers"])
        self.conv, self.S = {}, {}
        for i in self.layers:
            for b, d in (("q", self.d), ("k", self.d), ("v", self.d_v)):
                self.conv[i, b] = torch.zeros(self.tail, self.heads * d)
            self.S[i] = torch.zeros(self.heads, self.d, self.d_v)
        self.last = None

    def norm(self, x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * w

    def branch(self, i, b, h, d):
        """(heads, n, d) after the causal convolution and silu."""
        p = f"model.layers.{i}.attn.{b}_"
        x = torch.cat([self.conv[i, b], F.linear(h, self.w[p + "proj.weight"])])
        self.conv[i, b] = x[len(x) - self.tail :]
        w = self.w[p + "conv1d.weight"].reshape(x.shape[1], 1, self.tail + 1)
        if len(h) == 1:
            y = (x * w[:, 0].t()).sum(0, keepdim=True)
        else:
            y = F.conv1d(x.t()[None], w, groups=x.shape[1])[0].t()
        return F.silu(y).reshape(len(h), self.heads, d).transpose(0, 1)

    def memory(self, i, q, k, v, beta, log_g):
        S = self.S[i]
        n = q.shape[1]
        G = log_g.cumsum(1)
        if n == 1:
            S = S * G[..., None].exp()
            u = beta[..., None] * (v - k @ S)
            self.S[i] = S = S + k.transpose(1, 2) @ u
            return q @ S
        ratio = (G[:, :, None] - G[:, None, :]).tril().exp().tril()
        A = beta[..., None] * (k @ k.transpose(1, 2) * ratio).tril(-1) + torch.eye(n)
        rhs = beta[..., None] * (v - G[..., None].exp() * (k @ S))
        u = torch.linalg.solve_triangular(A, rhs, upper=False, unitriangular=True)
        o = G[..., None].exp() * (q @ S) + (q @ k.transpose(1, 2) * ratio) @ u
        decay = (G[:, -1:] - G).exp()[..., None]
        self.S[i] = S * G[:, -1].exp()[:, None, None] + (k * decay).transpose(1, 2) @ u
        return o

    def attention(self, i, h):
        n, p = len(h), f"model.layers.{i}.attn."
        unit = lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)
        q = unit(self.branch(i, "q", h, self.d)) / math.sqrt(self.d)
        k, v = unit(self.branch(i, "k", h, self.d)), self.branch(i, "v", h, self.d_v)
        beta = torch.sigmoid(F.linear(h, self.w[p + "b_proj.weight"])).t()
        a = F.linear(h, self.w[p + "a_proj.weight"]) + self.w[p + "dt_bias"]
        log_g = (-self.w[p + "A_log"].exp() * F.softplus(a)).t()
        cuts = [slice(t, t + CHUNK) for t in range(0, n, CHUNK)]
        o = torch.cat(
            [self.memory(i, q[:, s], k[:, s], v[:, s], beta[:, s], log_g[:, s]) for s in cuts], 1
        )
        o = self.norm(o.transpose(0, 1), self.w[p + "o_norm.weight"]).reshape(n, -1)
        if p + "g_proj.weight" in self.w:
            o = o * F.silu(F.linear(h, self.w[p + "g_proj.weight"]))
        return F.linear(o, self.w[p + "o_proj.weight"])

    def learn(self, tokens):
        """The hidden vectors after each token."""
        w = self.w
        x = w["model.embeddings.weight"][tokens]
        for i in self.layers:
            p = f"model.layers.{i}."
            x = x + self.attention(i, self.norm(x, w[p + "attn_norm.weight"]))
            h = self.norm(x, w[p + "mlp_norm.weight"])
            gate = F.silu(F.linear(h, w[p + "mlp.gate_proj.weight"]))
            up = F.linear(h, w[p + "mlp.up_proj.weight"])
            x = x + F.linear(gate * up, w[p + "mlp.down_proj.weight"])
        return self.norm(x, w["model.norm.weight"])

    def predict(self, hidden):
        head = self.w.get("lm_head.weight", self.w["model.embeddings.weight"])
        return F.log_softmax(F.linear(hidden, head), -1)


def main():
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    path, text, n, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open(text, "rb") as f:
        tokens = torch.tensor(list(f.read(n)))
    model, last, nats = Model(path), None, 0.0
    start = time.thread_time()
    for block in tokens.split(BLOCK):
        hidden = model.learn(block)
        logp = model.predict(hidden if last is None else torch.cat([last, hidden[:-1]]))
        if last is None:
            nats += math.log(logp.shape[1])
            logp, block = logp[:-1], block[1:]
        nats -= logp.gather(1, block[:, None]).double().sum().item()
        last = hidden[-1:]
    learn_s = (time.thread_time() - start) / len(tokens)
    start = time.thread_time()
    for t in range(steps):
        model.predict(last)
        last = model.learn(tokens[t : t + 1])
    step_s = (time.thread_time() - start) / max(steps, 1)
    print(learn_s, step_s, nats / len(tokens) / math.log(2))


main()
