#!/usr/bin/python3
"""A long life of one checkpoint session: 10^6 tokens with FW_FULL=1, 60,000 else. Every number
stays finite, the block and the process do not grow. What a token costs early and late is printed
and judged by nobody here: machines are noisy."""
import math
import os
import sys
import tempfile
import shutil

sys.dont_write_bytecode = True
import checkpoints  # noqa: E402
import fw  # noqa: E402

TOKENS = 1_000_000 if fw.FULL else 60_000
PIECE = TOKENS // 50
GROWTH = 4 << 20  # of the process between a fifth of its life and the end


class Lifetime(fw.Case):
    def setUp(self):
        super().setUp()
        models = tempfile.mkdtemp(prefix="fw-models-")
        self.addCleanup(shutil.rmtree, models)
        if not checkpoints.make_own(models, "byte-lm"):
            self.skipTest("no data/models/byte-lm")
        self.d = self.daemon("--models-dir", models)
        self.c = self.d.client()
        with open(os.path.join(fw.TESTS, "../data/prose.txt"), "rb") as f:
            self.text = f.read()

    def used(self):
        """Resident bytes and CPU seconds of the daemon."""
        with open(f"/proc/{self.d.proc.pid}/stat") as f:
            field = f.read().rsplit(")", 1)[1].split()
        tick = os.sysconf("SC_CLK_TCK")
        return (int(field[21]) * os.sysconf("SC_PAGE_SIZE"),
                (int(field[11]) + int(field[12])) / tick)

    def test_a_million_tokens_change_neither_size_nor_cost(self):
        size = self.c.create("old", "byte-lm")["state_bytes"]
        seen, spent, bits, resident = 0, [], [], 0
        while seen < TOKENS:
            at = seen % (len(self.text) - PIECE)
            before = self.used()[1]
            got = self.c.post("old", "learn", self.text[at:at + PIECE], type="text/plain",
                              durability="async", surprise="mean")
            seen += PIECE
            spent.append(self.used()[1] - before)
            bits.append(got["surprise"]["mean"])
            if seen <= TOKENS // 5:
                resident = self.used()[0]
        facts = self.c.facts("old")
        self.assertEqual(facts["tokens_seen"], TOKENS)
        self.assertEqual(facts["state_bytes"], size)
        self.assertTrue(all(map(math.isfinite, bits)))
        self.assertLess(max(bits), 4)
        blocks = self.c.get("old", "inspect")["blocks"]
        self.assertEqual({n for b in blocks.values() for n in b["nonfinite"]}, {0})
        if not fw.sanitized():
            self.assertLess(self.used()[0] - resident, GROWTH)
        fifth = len(spent) // 5
        print(f"# {TOKENS} tokens: late over early CPU "
              f"{sum(spent[-fifth:]) / max(sum(spent[fifth:2 * fifth]), 1e-9):.3f}, "
              f"{sum(bits) / len(bits):.3f} bits a byte")


if __name__ == "__main__":
    fw.main()
