#!/usr/bin/python3
"""What a checkpoint directory is worth, in float32 from the stored weights.

    evaluate.py MODEL FILE...      bits per byte of the first 1 KB, 10 KB, 100 KB and 1 MB of each file, state carried
    evaluate.py MODEL --recall N   of N random numbers of 1 to 60 digits, the digits given back in reverse
"""
import math, random, sys
import numpy as np, torch, torch.nn.functional as F
import gdn
from reverse import recall

MARKS = (1000, 10000, 100000, 1000000)


def bits(c, p, names, piece=512):
    """Files side by side, each with a state of its own. The first byte has nothing before it: 8 bits."""
    m = gdn.Model(c, dtype=torch.float32)
    for n, t in p.items():
        m.p[n].copy_(t)
    texts = [np.fromfile(n, np.uint8)[:MARKS[-1]] for n in names]
    end = -(-max(map(len, texts)) // piece) * piece
    t = torch.from_numpy(np.stack([np.pad(x, (0, end + 1 - len(x))) for x in texts])).long()
    state, total = m.state(len(names)), torch.full((len(names),), 8.0, dtype=torch.float64)
    for at in range(0, end, piece):
        logits, state = m.step(t[:, at:at + piece], None, state, learn=False)
        loss = F.cross_entropy(logits.double(), t[:, at + 1:at + piece + 1].reshape(-1), reduction="none")
        loss = loss.view(len(names), piece) / math.log(2)
        for mark in MARKS:
            if at + 1 < mark <= at + piece + 1:
                for n, x, v in zip(names, texts, total + loss[:, :mark - 1 - at].sum(1)):
                    if len(x) >= mark:
                        print("%s\t%d\t%.4f" % (n, mark, v / mark), flush=True)
        total += loss.sum(1)


def main():
    torch.set_num_threads(1)
    c, p = gdn.load(sys.argv[1])
    with torch.no_grad():
        if sys.argv[2] != "--recall":
            return bits(c, p, sys.argv[2:])
        rng, right, all_ = random.Random(7), 0, 0
        for _ in range(int(sys.argv[3])):
            n = rng.randint(1, 60)
            right += recall(c, p, torch.tensor([[rng.randrange(10) for _ in range(n)]]))
            all_ += n
        print("%d of %d digits" % (right, all_))


if __name__ == "__main__":
    main()
