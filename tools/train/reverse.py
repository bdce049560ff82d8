#!/usr/bin/python3
"""Trains reverse: reads `digits,` and gives the digits backwards, up to 60 of them, from a constant-size state.

    reverse.py OUT --minutes M

The longest number grows as the model learns (from 4 to 60). OUT gets config.json, model.safetensors and loss.tsv.
"""
import argparse, math, random, time
import torch
import gdn
from check import reference

VOCAB = "0123456789,#"
COMMA, END = 10, 11


def samples(rows, longest, rng):
    """Tokens and targets: `n,reversed#`, targets only from the comma on."""
    length = -(-(2 * longest + 1) // gdn.CHUNK) * gdn.CHUNK
    x = torch.full((rows, length + 1), END)
    y = torch.full((rows, length), -1)
    for r in range(rows):
        n = rng.randint(1 if r % 2 else longest // 2, longest)
        d = torch.tensor([rng.randrange(10) for _ in range(n)])
        x[r, :2 * n + 1] = torch.cat([d, torch.tensor([COMMA]), d.flip(0)])
        y[r, n:2 * n + 1] = x[r, n + 1:2 * n + 2]
    return x[:, :length].contiguous(), y


def recall(c, p, numbers):
    """Greedy: digits given back in the right place, of all; the numbers share a length."""
    with torch.no_grad():
        x = torch.cat([numbers, torch.full((len(numbers), 1), COMMA)], 1)
        logits, state = reference(c, p, x)
        out = []
        for _ in range(numbers.shape[1]):
            out.append(logits[:, -1].argmax(-1))
            logits, state = reference(c, p, out[-1][:, None], state)
        return int((torch.stack(out, 1) == numbers.flip(1)).sum())


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("out")
    a.add_argument("--minutes", type=float, required=True)
    a.add_argument("--hidden", type=int, default=40)
    a.add_argument("--layers", type=int, default=3)
    a.add_argument("--heads", type=int, default=2)
    a.add_argument("--head-dim", type=int, default=32)
    a.add_argument("--ff", type=int, default=48)
    a.add_argument("--batch", type=int, default=64)
    a.add_argument("--lr-muon", type=float, default=0.02)
    a.add_argument("--lr-adam", type=float, default=0.005)
    a.add_argument("--grow", type=float, default=0.3, help="bits per digit below which numbers get longer")
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_args()
    torch.set_num_threads(1)
    rng = random.Random(a.seed)
    c = gdn.config(len(VOCAB), a.hidden, a.layers, a.heads, a.ff, "chars", a.head_dim)
    c["vocabulary"] = VOCAB
    m = gdn.Model(c, a.seed, slow_decay=True, dtype=torch.float32)
    opt = gdn.Optimiser(m, a.lr_muon, a.lr_adam, decay=0.01)
    print("parameters", m.flat.numel(), flush=True)
    longest, mean, start, log = 4, 3.5, time.time(), ["step\tminutes\tlongest\tbits_per_digit"]
    while True:
        done = (time.time() - start) / (a.minutes * 60)
        x, y = samples(a.batch, longest, rng)
        loss, _ = m.step(x, y, m.state(a.batch))
        if not math.isfinite(loss):
            raise SystemExit(f"loss is {loss}")
        opt.step(max(0.01, min(1, (1 - done) / 0.4)))
        mean = 0.97 * mean + 0.03 * loss
        if mean < a.grow and longest < 60:
            longest, mean = longest + 2, mean + 0.1
        if opt.steps % 200 == 0 or done >= 1:
            log.append("%d\t%.1f\t%d\t%.4f" % (opt.steps, done * a.minutes, longest, mean))
            print(log[-1], flush=True)
        if opt.steps % 2000 == 0 or done >= 1:
            gdn.export(a.out, c, m.p, "BF16" if done >= 1 else "F32")
            with open(a.out + "/loss.tsv", "w") as f:
                f.write("\n".join(log) + "\n")
            got = recall(c, m.p, torch.tensor([[rng.randrange(10) for _ in range(longest)] for _ in range(50)]))
            print("greedy recall at %d digits: %.3f" % (longest, got / 50 / longest), flush=True)
        if done >= 1:
            break


if __name__ == "__main__":
    main()
