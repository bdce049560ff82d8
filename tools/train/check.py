#!/usr/bin/python3
"""Compares the hand-written forward and backward pass with torch's autograd on a plain reference."""
import math
import torch, torch.nn.functional as F
import gdn


def reference(c, p, tokens, state=None):
    """The model token by token, in the tensors' precision. Logits, and the state after (per layer: S, tail)."""
    h, d, hd, eps = c["num_heads"], c["head_dim"], c["num_heads"] * c["head_dim"], c["norm_eps"]
    rms = lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w
    unit = lambda x: x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)
    b, t = tokens.shape
    x, after = p["model.embeddings.weight"][tokens], []
    for i in range(c["num_hidden_layers"]):
        w = lambda n: p[f"model.layers.{i}.{n}"]
        n = rms(x, w("attn_norm.weight"))
        S, tail = state[i] if state else (x.new_zeros(b, h, d, d), x.new_zeros(b, 3, 3 * hd))
        raw = torch.cat([tail, torch.cat([n @ w(f"attn.{k}_proj.weight").t() for k in "qkv"], -1)], 1)
        conv = torch.cat([w(f"attn.{k}_conv1d.weight") for k in "qkv"])
        y = F.silu(F.conv1d(raw.transpose(1, 2), conv, groups=3 * hd).transpose(1, 2))
        q, k, v = [a.reshape(b, t, h, d) for a in y.split(hd, -1)]
        q, k = unit(q) * d ** -0.5, unit(k)
        g = torch.exp(-w("attn.A_log").exp() * F.softplus(n @ w("attn.a_proj.weight").t() + w("attn.dt_bias")))
        beta, out = torch.sigmoid(n @ w("attn.b_proj.weight").t()), []
        tokens_of = zip(*(a.unsqueeze(-2).unbind(1) for a in (q, k, v, g.unsqueeze(-1), beta.unsqueeze(-1))))
        for q1, k1, v1, g1, b1 in tokens_of:  # each (b, h, 1, ...): S <- g S; S <- S + k (b (v - S'k))'; o = S'q
            S = S * g1
            S = S + k1.transpose(-1, -2) * ((v1 - k1 @ S) * b1)
            out.append((q1 @ S).squeeze(-2))
        o = rms(torch.stack(out, 1), w("attn.o_norm.weight")).reshape(b, t, hd)
        x = x + (o * F.silu(n @ w("attn.g_proj.weight").t())) @ w("attn.o_proj.weight").t()
        n = rms(x, w("mlp_norm.weight"))
        n = F.silu(n @ w("mlp.gate_proj.weight").t()) * (n @ w("mlp.up_proj.weight").t())
        x = x + n @ w("mlp.down_proj.weight").t()
        after.append((S, raw[:, -3:]))
    return rms(x, p["model.norm.weight"]) @ p["lm_head.weight"].t(), after


def compare(dtype, tolerance):
    torch.manual_seed(0)
    c = gdn.config(64, 64, 2, 2, 96, "bytes")
    m = gdn.Model(c, dtype=dtype)
    for n, t in m.p.items():
        t.add_(torch.randn(t.shape) * (0.1 if t.dim() > 1 else 0.02))
    p = {n: t.clone().requires_grad_() for n, t in m.p.items()}
    tokens = torch.randint(0, 64, (3, 129))
    _, st = reference(c, p, tokens[:, :64])
    logits, _ = reference(c, p, tokens[:, 64:128], [(s.detach(), k.detach()) for s, k in st])
    loss = F.cross_entropy(logits.reshape(-1, 64), tokens[:, 65:].reshape(-1))
    loss.backward()
    _, mine = m.step(tokens[:, :64], None, m.state(3), learn=False)
    got, _ = m.step(tokens[:, 64:128].contiguous(), tokens[:, 65:], mine)
    want, worst = loss.item() / math.log(2), 0
    for n in p:
        a, b = p[n].grad.flatten(), m.g[n].flatten()
        worst = max(worst, ((a - b).norm() / (a.norm() + 1e-9)).item())
    print("%s: loss %.6f, reference %.6f bits; gradients differ by at most %.2g of their length" % (dtype, got, want, worst))
    assert abs(got - want) < tolerance / 8 and worst < tolerance


if __name__ == "__main__":
    torch.set_num_threads(1)
    compare(gdn.BF16, 0.08)
    compare(torch.float32, 1e-3)
