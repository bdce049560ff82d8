#!/usr/bin/python3
"""Trains byte-lm: a byte-level Gated DeltaNet on text files, one core, in a given number of minutes.

    byte_lm.py OUT --data FILE[:WEIGHT] ... --held-out FILE --minutes M [--checkpoint FILE]

Each row of the batch reads on in its file, state carried, and jumps to another place (state empty) now and then: so
the model learns both beginnings and long readings. The learning rate follows the clock, so the run ends on time on a
busy machine. A checkpoint, if there, is gone on from. OUT gets config.json, model.safetensors (bfloat16 in the end,
float32 before) and loss.tsv.
"""
import argparse, math, os, random, time
import numpy as np, torch, torch.nn.functional as F
import gdn


class Rows:
    """Readers of files; each yields its next `length` bytes and the one after."""

    def __init__(self, specs, batch, length, rnd):
        parts = [s.rpartition(":") if ":" in s else (s, "", "1") for s in specs]
        self.files = [torch.from_numpy(np.fromfile(f, np.uint8)) for f, _, _ in parts]
        self.weights = [float(w) for _, _, w in parts]
        self.length, self.rnd = length, rnd
        self.at = [self.jump() for _ in range(batch)]

    def jump(self):
        f = self.rnd.choices(self.files, self.weights)[0]
        return [f, self.rnd.randrange(len(f) - self.length - 1)]

    def next(self, state, chance):
        out = []
        for row, place in enumerate(self.at):
            if self.rnd.random() < chance or place[1] + self.length + 1 > len(place[0]):
                place = self.at[row] = self.jump()
                for s, tail in state:
                    s[row].zero_()
                    tail[row].zero_()
            out.append(place[0][place[1]:place[1] + self.length + 1])
            place[1] += self.length
        return torch.stack(out).long()


def held_out(m, text, rows=8, piece=512):
    """Bits per byte of `text`, read as `rows` parallel parts with state carried."""
    n = len(text) // rows // piece * piece
    t = torch.stack([text[i * n:i * n + n] for i in range(rows)]).long()
    state, total, count = m.state(rows), 0.0, 0
    for at in range(0, n, piece):
        logits, state = m.step(t[:, at:at + piece].contiguous(), None, state, learn=False)
        want = torch.cat([t[:, at + 1:at + piece + 1], t.new_full((rows, max(0, at + piece + 1 - n)), -1)], 1)
        total += F.cross_entropy(logits.float(), want.reshape(-1), ignore_index=-1, reduction="sum").item()
        count += int((want >= 0).sum())
    return total / count / math.log(2)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--data", nargs="+", required=True)
    p.add_argument("--held-out", required=True)
    p.add_argument("--minutes", type=float, required=True)
    p.add_argument("--checkpoint")
    p.add_argument("--hidden", type=int, default=160)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--heads", type=int, default=5)
    p.add_argument("--ff", type=int, default=384)
    p.add_argument("--batch", type=int, default=12)
    p.add_argument("--length", type=int, default=512)
    p.add_argument("--lr-muon", type=float, default=0.02)
    p.add_argument("--lr-adam", type=float, default=0.003)
    p.add_argument("--constant", type=float, default=0.15, help="part of the run before the learning rate falls")
    p.add_argument("--max-steps", type=int, default=0, help="follow the number of steps instead of the clock")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    torch.set_num_threads(1)
    rnd = random.Random(a.seed)
    m = gdn.Model(gdn.config(256, a.hidden, a.layers, a.heads, a.ff, "bytes"), a.seed)
    opt = gdn.Optimiser(m, a.lr_muon, a.lr_adam)
    start, tokens, log = time.time(), 0, ["step\ttokens\tminutes\ttrain_bits\theld_out_bits"]
    if a.checkpoint and os.path.exists(a.checkpoint):
        s = opt.load(a.checkpoint)
        start, tokens, log = s["start"], s["tokens"], s["log"]
        rnd.seed(a.seed + opt.steps)
    rows, state = Rows(a.data, a.batch, a.length, rnd), m.state(a.batch)
    text = torch.from_numpy(np.fromfile(a.held_out, np.uint8))
    mean, last = None, time.time()
    print("parameters", m.flat.numel(), flush=True)
    while True:
        done = opt.steps / a.max_steps if a.max_steps else (time.time() - start) / (a.minutes * 60)
        b = rows.next(state, 1 / 32)
        loss, state = m.step(b[:, :-1], b[:, 1:], state)
        if not math.isfinite(loss):
            raise SystemExit(f"loss is {loss} at step {opt.steps}")
        opt.step(max(0.01, min(1, (1 - done) / (1 - a.constant))))
        tokens += a.batch * a.length
        mean = loss if mean is None else 0.99 * mean + 0.01 * loss
        if opt.steps % 100 == 0:
            print(opt.steps, tokens, "bits %.3f minutes %.1f" % (mean, (time.time() - start) / 60), flush=True)
        if time.time() - last > 240 or done >= 1:
            last = time.time()
            log.append("%d\t%d\t%.1f\t%.4f\t%.4f" % (opt.steps, tokens, (last - start) / 60, mean, held_out(m, text)))
            print(log[-1], flush=True)
            gdn.export(a.out, m.c, m.p, "BF16" if done >= 1 else "F32")
            with open(os.path.join(a.out, "loss.tsv"), "w") as f:
                f.write("\n".join(log) + "\n")
            if a.checkpoint:
                opt.save(a.checkpoint, start=start, tokens=tokens, log=log)
        if done >= 1:
            break


if __name__ == "__main__":
    main()
