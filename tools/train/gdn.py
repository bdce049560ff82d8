"""A Gated DeltaNet with a hand-written backward pass, for one CPU core.

Matrix products run in bfloat16 (oneDNN uses the processor's bfloat16 instructions) or float32, everything between them
in kernels.c; weights, sums and states are float32. Tensor names are those of flash-linear-attention's
GatedDeltaNetForCausalLM. Sequences may go on where the last call ended: the state and the convolutions' last inputs
are carried, gradients are not.
"""
import ctypes, json, math, os, struct, subprocess, tempfile
import numpy as np, torch

BF16 = torch.bfloat16
CHUNK = 32  # as in kernels.c: a length is a multiple of it
HERE = os.path.dirname(os.path.abspath(__file__))
MATRICES = ("attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.g_proj", "attn.o_proj",
            "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")


def config(vocab_size, hidden, layers, heads, ff, tokenizer, head_dim=32):
    return dict(architecture="gated_deltanet", vocab_size=vocab_size, hidden_size=hidden, num_hidden_layers=layers,
                num_heads=heads, head_dim=head_dim, expand_v=1.0, intermediate_size=ff, hidden_act="swish",
                norm_eps=1e-5, conv_size=4, use_gate=True, use_short_conv=True, tie_word_embeddings=False,
                tokenizer=tokenizer)


def shapes(c):
    """Every tensor's shape, in the file's order."""
    d, h, w, f = c["hidden_size"], c["num_heads"], c["num_heads"] * c["head_dim"], c["intermediate_size"]
    out = {"model.embeddings.weight": (c["vocab_size"], d)}
    for i in range(c["num_hidden_layers"]):
        p = f"model.layers.{i}."
        out[p + "attn_norm.weight"] = (d,)
        for n in "qkvg":
            out[p + f"attn.{n}_proj.weight"] = (w, d)
        for n in "ab":
            out[p + f"attn.{n}_proj.weight"] = (h, d)
        for n in "qkv":
            out[p + f"attn.{n}_conv1d.weight"] = (w, 1, 4)
        out[p + "attn.A_log"] = out[p + "attn.dt_bias"] = (h,)
        out[p + "attn.o_norm.weight"] = (c["head_dim"],)
        out[p + "attn.o_proj.weight"] = (d, w)
        out[p + "mlp_norm.weight"] = (d,)
        out[p + "mlp.gate_proj.weight"] = out[p + "mlp.up_proj.weight"] = (f, d)
        out[p + "mlp.down_proj.weight"] = (d, f)
    out["model.norm.weight"] = (d,)
    out["lm_head.weight"] = (c["vocab_size"], d)
    return out


class Norm(ctypes.Structure):
    _fields_ = ([(n, ctypes.c_int64) for n in ("rows", "d")] + [(n, ctypes.c_void_p) for n in ("x", "w", "delta")]
                + [("eps", ctypes.c_float)]
                + [(n, ctypes.c_void_p) for n in ("sum", "rstd", "out", "d_out", "grad", "d_w", "grad16")])


class Mixer(ctypes.Structure):
    _fields_ = ([(n, ctypes.c_int64) for n in ("batch", "length", "heads")]
                + [(n, ctypes.c_void_p) for n in ("input", "conv", "a_log", "dt_bias", "o_norm")]
                + [("eps", ctypes.c_float)]
                + [(n, ctypes.c_void_p) for n in ("state_in", "tail_in", "state_out", "tail_out", "saved", "out",
                                                  "d_out", "d_in", "d_conv", "d_a_log", "d_dt_bias", "d_o_norm")])


def kernels(head_dim, dtype):
    """kernels.c, compiled for this processor, head size and type of activations."""
    out = os.path.join(tempfile.mkdtemp(), "kernels.so")
    subprocess.run([os.environ.get("CC", "cc"), "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math",
                    "-shared", "-fPIC", f"-DD={head_dim}", "-DFLOAT" if dtype == torch.float32 else "-UFLOAT", "-o", out, os.path.join(HERE, "kernels.c"), "-lm"],
                   check=True)
    lib = ctypes.CDLL(out)
    for option, value in ((-4, 0), (-1, 1 << 30), (-2, 1 << 28)):  # M_MMAP_MAX, M_TRIM_THRESHOLD, M_TOP_PAD:
        ctypes.CDLL(None).mallopt(option, value)  # freed activations are used again, not given back and faulted in
    lib.cross_entropy.restype = ctypes.c_double
    return lib


def ptr(t):
    assert t is None or t.is_contiguous()
    return ctypes.c_void_p(t.data_ptr() if t is not None else None)


def i64(*n):
    return [ctypes.c_int64(x) for x in n]


class Model:
    """Parameters live in one flat float32 vector, hidden matrices first; self.p names views into it."""

    def __init__(self, c, seed=1, slow_decay=False, dtype=BF16):
        assert c["expand_v"] == 1 and max(c["hidden_size"], c["vocab_size"], 2 * c["intermediate_size"]) <= 4096
        self.c, self.dtype, self.lib = c, dtype, kernels(c["head_dim"], dtype)
        named = shapes(c)
        self.muon = [n for n in named if n.split(".", 3)[-1].rsplit(".", 1)[0] in MATRICES]
        order = self.muon + [n for n in named if n not in self.muon]
        self.flat = torch.empty(sum(math.prod(named[n]) for n in order))
        self.grad = torch.zeros_like(self.flat)
        self.p, self.g, at = {}, {}, 0
        for n in order:
            k = math.prod(named[n])
            self.p[n], self.g[n] = self.flat[at:at + k].view(named[n]), self.grad[at:at + k].view(named[n])
            at += k
            if n == self.muon[-1]:
                self.n_muon = at
        self.init(torch.Generator().manual_seed(seed), slow_decay)

    def init(self, rng, slow_decay):
        for n, t in self.p.items():
            h = self.c["num_heads"]
            if n.endswith("norm.weight"):
                t.fill_(1)
            elif n.endswith("A_log"):
                t.copy_(torch.log(torch.linspace(1, 1 if slow_decay else 16, h)))
            elif n.endswith("dt_bias"):
                lo, hi = (1e-4, 1e-3) if slow_decay else (1e-3, 0.1)
                dt = torch.exp(torch.rand(h, generator=rng) * math.log(hi / lo) + math.log(lo))
                t.copy_(dt + torch.log(-torch.expm1(-dt)))
            elif n.endswith(("o_proj.weight", "down_proj.weight", "lm_head.weight")):
                t.zero_()
            elif "conv1d" in n:
                t.normal_(0, 0.3, generator=rng)
            elif "embeddings" in n:
                t.normal_(0, 0.5, generator=rng)
            else:
                t.normal_(0, 0.6 * t.shape[1] ** -0.5, generator=rng)

    def state(self, batch):
        """Nothing read yet: per layer (state, last inputs of the convolutions)."""
        h, d = self.c["num_heads"], self.c["head_dim"]
        return [(torch.zeros(batch, h, d, d), torch.zeros(batch, 3, 3 * h * d, dtype=self.dtype))
                for _ in range(self.c["num_hidden_layers"])]

    def weights16(self):
        """What the products read, in their type; what one product reads is one matrix."""
        flat = self.flat.to(self.dtype)
        at, w = 0, {}
        for n, t in self.p.items():
            w[n] = flat[at:at + t.numel()].view(t.shape)
            at += t.numel()
        for i in range(self.c["num_hidden_layers"]):
            a, m = f"model.layers.{i}.attn.", f"model.layers.{i}.mlp."
            w[a + "in"] = torch.cat([w[a + f"{n}_proj.weight"] for n in "qkvgab"])
            w[m + "in"] = torch.cat([w[m + "gate_proj.weight"], w[m + "up_proj.weight"]])
        return w

    def norm(self, name, x, delta):
        """x + delta, and its norm: kept for the way back under `sum` and `out`."""
        rows, d = x.shape
        keep = dict(x=x, w=self.p[name], delta=delta, sum=torch.empty_like(x), rstd=torch.empty(rows),
                    out=torch.empty(rows, d, dtype=self.dtype))
        n = Norm(rows=rows, d=d, eps=self.c["norm_eps"], **{k: ptr(t) for k, t in keep.items()})
        self.lib.norm_fwd(ctypes.byref(n))
        return dict(keep, call=n)

    def norm_back(self, name, saved, d_out, grad):
        n, grad16 = saved["call"], torch.empty(grad.shape, dtype=self.dtype)
        for k, t in dict(d_out=d_out, grad=grad, d_w=self.g[name], grad16=grad16).items():
            setattr(n, k, ptr(t))
        self.lib.norm_bwd(ctypes.byref(n))
        return grad16

    def mixer(self, i, x, state, batch, length):
        a, c = f"model.layers.{i}.attn.", self.c
        h, d = c["num_heads"], c["head_dim"]
        w = h * d
        conv = torch.cat([self.p[a + f"{n}_conv1d.weight"].view(-1, 4) for n in "qkv"])
        new = (torch.empty(batch, h, d, d), torch.empty(batch, 3, 3 * w, dtype=self.dtype))
        keep = dict(input=x, conv=conv, a_log=self.p[a + "A_log"], dt_bias=self.p[a + "dt_bias"],
                    o_norm=self.p[a + "o_norm.weight"], state_in=state[0], tail_in=state[1], state_out=new[0],
                    tail_out=new[1], saved=torch.empty(batch, h, length // CHUNK, d, d),
                    out=torch.empty(batch * length, w, dtype=self.dtype))
        m = Mixer(batch=batch, length=length, heads=h, eps=c["norm_eps"], **{k: ptr(t) for k, t in keep.items()})
        self.lib.mixer_fwd(ctypes.byref(m))
        return keep, m, new

    def mixer_back(self, i, keep, m, d_out):
        a = f"model.layers.{i}.attn."
        d = dict(d_out=d_out, d_in=torch.empty_like(keep["input"]), d_conv=torch.zeros_like(keep["conv"]),
                 d_a_log=self.g[a + "A_log"], d_dt_bias=self.g[a + "dt_bias"], d_o_norm=self.g[a + "o_norm.weight"])
        for k, t in d.items():
            setattr(m, k, ptr(t))
        self.lib.mixer_bwd(ctypes.byref(m))
        for n, t in zip("qkv", d["d_conv"].view(3, -1, 1, 4)):
            self.g[a + f"{n}_conv1d.weight"].add_(t)
        return d["d_in"]

    def step(self, tokens, targets, state, learn=True):
        """Mean loss in bits over targets >= 0, and the state after; gradients are left in self.grad."""
        batch, length = tokens.shape
        rows, c, w = batch * length, self.c, self.weights16()
        x, delta, saved, after = self.p["model.embeddings.weight"][tokens.reshape(-1)], None, [], []
        for i in range(c["num_hidden_layers"]):
            l = f"model.layers.{i}."
            n1 = self.norm(l + "attn_norm.weight", x, delta)
            keep, m, new = self.mixer(i, n1["out"] @ w[l + "attn.in"].t(), state[i], batch, length)
            n2 = self.norm(l + "mlp_norm.weight", n1["sum"], keep["out"] @ w[l + "attn.o_proj.weight"].t())
            gu = n2["out"] @ w[l + "mlp.in"].t()
            act = torch.empty(rows, c["intermediate_size"], dtype=self.dtype)
            self.lib.swiglu_fwd(*i64(rows, c["intermediate_size"]), ptr(gu), ptr(act))
            x, delta = n2["sum"], act @ w[l + "mlp.down_proj.weight"].t()
            saved.append((n1, keep, m, n2, gu, act))
            after.append(new)
        last = self.norm("model.norm.weight", x, delta)
        logits = last["out"] @ w["lm_head.weight"].t()
        if not learn:
            return logits, after
        targets = targets.contiguous().view(-1)
        count = int((targets >= 0).sum())
        loss = self.lib.cross_entropy(*i64(rows, c["vocab_size"]), ptr(logits), ptr(targets),
                                      ctypes.c_float(1 / count)) / count / math.log(2)
        self.back(tokens, logits, last, saved, w)
        return loss, after

    def back(self, tokens, d_logits, last, saved, w):
        self.grad.zero_()
        self.g["lm_head.weight"].copy_(d_logits.t() @ last["out"])
        g = torch.zeros_like(last["sum"])
        g16 = self.norm_back("model.norm.weight", last, d_logits @ w["lm_head.weight"], g)
        for i in reversed(range(self.c["num_hidden_layers"])):
            l = f"model.layers.{i}."
            n1, keep, m, n2, gu, act = saved.pop()
            self.g[l + "mlp.down_proj.weight"].copy_(g16.t() @ act)
            d_act, d_gu = g16 @ w[l + "mlp.down_proj.weight"], torch.empty_like(gu)
            self.lib.swiglu_bwd(*i64(*act.shape), ptr(gu), ptr(d_act), ptr(d_gu))
            self.split(d_gu.t() @ n2["out"], l + "mlp.", ("gate", "up"))
            g16 = self.norm_back(l + "mlp_norm.weight", n2, d_gu @ w[l + "mlp.in"], g)
            self.g[l + "attn.o_proj.weight"].copy_(g16.t() @ keep["out"])
            d_in = self.mixer_back(i, keep, m, g16 @ w[l + "attn.o_proj.weight"])
            self.split(d_in.t() @ n1["out"], l + "attn.", "qkvgab")
            g16 = self.norm_back(l + "attn_norm.weight", n1, d_in @ w[l + "attn.in"], g)
        self.g["model.embeddings.weight"].index_add_(0, tokens.reshape(-1), g)

    def split(self, t, prefix, names):
        at = 0
        for n in names:
            to = self.g[prefix + n + "_proj.weight"]
            to.copy_(t[at:at + to.shape[0]])
            at += to.shape[0]


def orthogonal(x):
    """Newton-Schulz: a stack of matrices towards the nearest orthogonal ones."""
    tall = x.shape[1] > x.shape[2]
    x = (x.transpose(1, 2) if tall else x)
    x = (x / (x.flatten(1).norm(dim=1)[:, None, None] + 1e-20)).to(BF16)
    for _ in range(5):
        a = x @ x.transpose(1, 2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.transpose(1, 2) if tall else x).float()


class Optimiser:
    """Muon (orthogonalised momentum) for the hidden matrices, Adam for the rest."""

    def __init__(self, model, lr_muon, lr_adam, decay=0.02):
        self.m, self.lr_muon, self.lr_adam, self.decay, self.steps = model, lr_muon, lr_adam, decay, 0
        self.first, self.second = torch.zeros_like(model.flat), torch.zeros_like(model.flat[model.n_muon:])

    def step(self, scale):
        m, n = self.m, self.m.n_muon
        self.steps += 1
        warm = min(1, self.steps / 300)
        mu = 0.85 + 0.10 * warm
        self.first[:n].mul_(mu).add_(m.grad[:n], alpha=1 - mu)
        look = m.grad[:n].mul(1 - mu).add_(self.first[:n], alpha=mu)
        lr = self.lr_muon * scale * warm
        m.flat[:n].mul_(1 - lr * self.decay)
        groups, at = {}, 0
        for name in m.muon:
            p = m.p[name]
            groups.setdefault(tuple(p.shape), []).append((p, look[at:at + p.numel()].view(p.shape)))
            at += p.numel()
        for shape, pairs in groups.items():
            gain = lr * max(1, shape[0] / shape[1]) ** 0.5
            for (p, _), u in zip(pairs, orthogonal(torch.stack([g for _, g in pairs]))):
                p.add_(u, alpha=-gain)
        g, a, b = m.grad[n:], self.first[n:], self.second
        a.mul_(0.9).add_(g, alpha=0.1)
        b.mul_(0.98).addcmul_(g, g, value=0.02)
        c1, c2 = 1 - 0.9 ** self.steps, 1 - 0.98 ** self.steps
        m.flat[n:].addcdiv_(a, (b / c2).sqrt_().add_(1e-10), value=-self.lr_adam * scale * warm / c1)

    def save(self, path, **more):
        torch.save(dict(flat=self.m.flat, first=self.first, second=self.second, steps=self.steps,
                        config=self.m.c, **more), path + ".tmp")
        os.replace(path + ".tmp", path)

    def load(self, path):
        s = torch.load(path)
        assert s["config"] == self.m.c
        self.m.flat.copy_(s["flat"])
        self.first.copy_(s["first"])
        self.second.copy_(s["second"])
        self.steps = s["steps"]
        return s


def export(directory, c, tensors, dtype="BF16"):
    """config.json and model.safetensors; bfloat16 is rounded to nearest even."""
    os.makedirs(directory, exist_ok=True)
    header, at, blobs = {"__metadata__": {"format": "pt"}}, 0, []
    for n in shapes(c):
        t = tensors[n].detach().contiguous()
        data = (t.to(BF16).view(torch.int16) if dtype == "BF16" else t).numpy().tobytes()
        header[n] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
        blobs.append(data)
    h = json.dumps(header, separators=(",", ":")).encode()
    h += b" " * (-(8 + len(h)) % 8)
    path = os.path.join(directory, "model.safetensors")
    with open(path + ".tmp", "wb") as f:
        f.write(struct.pack("<Q", len(h)) + h + b"".join(blobs))
    os.replace(path + ".tmp", path)
    with open(os.path.join(directory, "config.json"), "w") as f:
        f.write(json.dumps(c, indent=2) + "\n")


def load(directory):
    """config and float32 tensors of a checkpoint directory."""
    with open(os.path.join(directory, "config.json")) as f:
        c = json.load(f)
    with open(os.path.join(directory, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data, tensors = f.read(), {}
    for n, e in header.items():
        if n != "__metadata__":
            raw = data[slice(*e["data_offsets"])]
            a = np.frombuffer(raw, {"BF16": np.uint16, "F32": np.uint32}[e["dtype"]]).astype(np.uint32)
            a = (a << 16 if e["dtype"] == "BF16" else a).view(np.float32).reshape(e["shape"])
            tensors[n] = torch.from_numpy(a)
    return c, tensors
