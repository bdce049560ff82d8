"""Checkpoint directories for the tests: the project's own in data/models, small ones of numbers
from a generator, and real ones around files that may be there ($FW_SHARED/models)."""
import json
import os
import shutil

import fw
import streams as s

OWN = os.path.join(fw.TESTS, "../data/models")
SHARED = os.environ.get("FW_SHARED") or os.path.join(fw.TESTS, "../../shared")

# file in $FW_SHARED/models: what its config.json says
REAL = {
    "rwkv7-reverse": {"architecture": "rwkv7", "num_layers": 2, "head_size": 16,
                      "tokenizer": "chars", "vocabulary": "0123456789,#"},
    "rwkv7-tiny-834k": {"architecture": "rwkv7", "num_layers": 12, "tokenizer": "bytes"},
    "byte-gdn-dev": {"architecture": "gated_deltanet", "hidden_size": 128,
                     "num_hidden_layers": 4, "num_heads": 4, "head_dim": 32, "expand_v": 1.0,
                     "intermediate_size": 320, "conv_size": 4, "use_gate": True,
                     "norm_eps": 1e-5, "tokenizer": "bytes"},
}


def make(top, name, config, weights):
    """A checkpoint directory; weights: the bytes of model.safetensors."""
    path = os.path.join(top, name)
    os.makedirs(path)
    with open(os.path.join(path, "config.json"), "w") as f:
        json.dump(config, f)
    with open(os.path.join(path, "model.safetensors"), "wb") as f:
        f.write(weights)
    return path


def shared(name):
    """The bytes of a file in $FW_SHARED/models, or None."""
    try:
        with open(os.path.join(SHARED, "models", name + ".safetensors"), "rb") as f:
            return f.read()
    except OSError:
        return None


def make_shared(top, name):
    """False where the file is not there."""
    weights = shared(name)
    if weights:
        make(top, name, REAL[name], weights)
    return bool(weights)


def make_own(top, name):
    """A copy of one in data/models; False where it is not there."""
    path = os.path.join(OWN, name)
    if not os.path.exists(os.path.join(path, "model.safetensors")):
        return False
    shutil.copytree(path, os.path.join(top, name))
    return True


def make_gpt2(top, name="noise", seed=1, context=48, d=16, layers=2, vocab=256):
    """A GPT-2 of random numbers: it knows nothing, and every bit of it is the same anywhere."""
    r = s.Lcg(seed)

    def tensor(*shape, one=False):
        n = 1
        for x in shape:
            n *= x
        return ("F32", list(shape),
                s.floats([(r.below(65) - 32) / 96 + one for _ in range(n)]))
    t = {"wte.weight": tensor(vocab, d), "wpe.weight": tensor(context, d),
         "ln_f.weight": tensor(d, one=True), "ln_f.bias": tensor(d)}
    for i in range(layers):
        for part, shape in (("ln_1.weight", [d]), ("ln_1.bias", [d]), ("ln_2.weight", [d]),
                            ("ln_2.bias", [d]), ("attn.c_attn.weight", [3 * d, d]),
                            ("attn.c_proj.weight", [d, d]), ("mlp.c_fc.weight", [4 * d, d]),
                            ("mlp.c_proj.weight", [d, 4 * d])):
            t[f"h.{i}.{part}"] = tensor(*shape, one=part.startswith("ln") and part[-1] == "t")
    config = {"architecture": "gpt2", "n_layer": layers, "n_head": 2, "block_size": context,
              "tokenizer": "bytes"}
    return make(top, name, config, s.st_write(t))
