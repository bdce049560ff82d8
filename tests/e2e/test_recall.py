#!/usr/bin/python3
"""Models that were trained to say a number backwards from a state of fixed size: whatever a
server does to a session between two digits, every digit comes back.

Runs with the project's own `reverse` (data/models) and, where it is, with rwkv7-reverse of
$FW_SHARED/models. The first must recall 95 of 100 numbers straight, the second all; in every
other way to send them each must answer as it does straight."""
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import checkpoints  # noqa: E402
import fw  # noqa: E402
import streams as s  # noqa: E402

NUMBERS, SOME = 100, 100 if fw.FULL else 25


class Recall:
    """The tests, for one model."""

    def setUp(self):
        super().setUp()
        self.models = tempfile.mkdtemp(prefix="fw-models-")
        self.addCleanup(shutil.rmtree, self.models)
        if not self.make(self.models, self.model):
            self.skipTest(f"no model {self.model}")
        self.serve()
        r = s.Lcg(1)  # always the same numbers: a model need not know every number there is
        self.numbers = ["".join("0123456789"[r.below(10)] for _ in range(1 + r.below(60)))
                        for _ in range(NUMBERS)]
        self.all, self.numbers = self.numbers, self.numbers[:SOME]

    def serve(self, *flags):
        self.d = self.daemon("--models-dir", self.models, *flags)
        self.c = self.d.client()

    def feed(self, id, text, **query):
        self.c.post(id, "learn", {"text": text}, durability="async", **query)

    def answer(self, id, number):
        got = self.c.post(id, "generate", {"max_tokens": len(number), "temperature": 0})
        return got["text"]

    def straight(self, numbers):
        """What the model says of each number, a session for each."""
        out = []
        for i, n in enumerate(numbers):
            self.c.create(f"straight-{i}", self.model)
            self.feed(f"straight-{i}", n + ",")
            out.append(self.answer(f"straight-{i}", n))
        return out

    def agrees(self, prefix, answers=None):
        got = answers or [self.answer(f"{prefix}{i}", n) for i, n in enumerate(self.numbers)]
        self.assertEqual(got, self.straight(self.numbers))

    def create(self, prefix):
        for i in range(len(self.numbers)):
            self.c.create(f"{prefix}{i}", self.model)

    def test_every_digit_comes_back(self):
        said = self.straight(self.all)
        right = sum(a == n[::-1] for a, n in zip(said, self.all, strict=True))
        digits = sum(x == y for a, n in zip(said, self.all, strict=True)
                     for x, y in zip(a, n[::-1], strict=True))
        print(f"# {self.model}: {right} of {NUMBERS} numbers, {digits} of "
              f"{sum(map(len, self.all))} digits")
        self.assertGreaterEqual(right, self.least)

    def test_one_digit_per_request(self):
        self.create("d")
        for i, n in enumerate(self.numbers):
            for x in n + ",":
                self.feed(f"d{i}", x)
        self.agrees("d")

    def test_one_digit_per_request_of_the_answer_too(self):
        self.create("d")
        answers = []
        for i, n in enumerate(self.numbers):
            self.feed(f"d{i}", n + ",")
            said = ""
            for _ in n:
                top = self.c.post(f"d{i}", "predict", {"top_logprobs": 1})["top"][0]["text"]
                self.feed(f"d{i}", top)
                said += top
            answers.append(said)
        self.agrees("d", answers)

    def test_kill_9_in_the_middle(self):
        self.create("k")
        for i, n in enumerate(self.numbers):
            self.c.post(f"k{i}", "learn", {"text": n[:len(n) // 2] or n})
        self.d.restart(hard=True)
        self.c = self.d.client()
        for i, n in enumerate(self.numbers):
            rest = n[len(n) // 2:] if len(n) > 1 else ""
            self.c.post(f"k{i}", "learn", {"text": rest + ","})
        self.d.restart(hard=True)
        self.c = self.d.client()
        self.agrees("k")

    def test_export_delete_import(self):
        self.create("e")
        for i, n in enumerate(self.numbers):
            half = (len(n) + 1) // 2
            self.feed(f"e{i}", n[:half])
            file = self.c.export(f"e{i}")
            self.c.ok("DELETE", f"/v1/sessions/e{i}")
            self.c.create(f"e{i}", self.model)
            self.feed(f"e{i}", "0123,")
            self.c.ok("PUT", f"/v1/sessions/e{i}/import", file,
                      type="application/vnd.safetensors")
            self.feed(f"e{i}", n[half:] + ",")
        self.agrees("e")

    def test_a_fork_while_the_parent_goes_on(self):
        self.create("p")
        for i, n in enumerate(self.numbers):
            half = (len(n) + 1) // 2
            self.feed(f"p{i}", n[:half])
            self.c.post(f"p{i}", "fork", {"id": f"f{i}"})
            for a, b in zip((n[half:] + ",").ljust(20), "98765432109876543210"):
                self.feed(f"p{i}", b)
                if a != " ":
                    self.feed(f"f{i}", a)
            if len(n) - half > 19:
                self.feed(f"f{i}", n[half + 20:] + ",")
        self.agrees("f")

    def test_after_eviction_under_a_memory_limit(self):
        self.d.stop()
        self.serve("--max-resident-bytes", "1M")
        self.create("v")
        for i, n in enumerate(self.numbers):
            self.feed(f"v{i}", n[:(len(n) + 1) // 2])
        self.evict()
        for i, n in enumerate(self.numbers):
            self.feed(f"v{i}", n[(len(n) + 1) // 2:] + ",")
        self.evict()
        self.agrees("v")

    def evict(self):
        """A state that fills the memory pushes all others out."""
        id = f"big-{self.random.randrange(10**9)}"
        self.c.create(id, "bytes", {"state_bytes": s.MIB})
        self.c.post(id, "learn", {"text": "make room"})
        resident = [self.c.facts(f"v{i}")["resident"] for i in range(len(self.numbers))]
        self.assertNotIn(True, resident)

    def test_64_sessions_interleaved(self):
        said = {}

        def client(which):
            c = self.d.client()
            for i in which:
                c.create(f"w{i}", self.model)
            for at in range(61):
                for i in which:
                    text = (self.numbers[i] + ",")[at:at + 1]
                    if text:
                        c.post(f"w{i}", "learn", {"text": text}, durability="async")
            for i in which:
                said[i] = c.post(f"w{i}", "generate", {"max_tokens": len(self.numbers[i]),
                                                       "temperature": 0})["text"]
        self.numbers = self.all[:64]
        with fw.Workers() as w:
            for k in range(8):
                w.run(client, range(k, 64, 8))
        self.agrees("", [said[i] for i in range(64)])


class Own(Recall, fw.Case):
    model, least = "reverse", 95
    make = staticmethod(checkpoints.make_own)


class Shared(Recall, fw.Case):
    model, least = "rwkv7-reverse", NUMBERS
    make = staticmethod(checkpoints.make_shared)


if __name__ == "__main__":
    fw.main()
