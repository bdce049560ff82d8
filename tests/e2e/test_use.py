#!/usr/bin/python3
"""It learns: on the real samples in data/ surprise falls, what does not belong stands out,
memories give back what was written."""
import math
import os
import struct
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

DATA = os.path.join(fw.TESTS, "../data")


def sample(name, n):
    with open(os.path.join(DATA, name), "rb") as f:
        return f.read(n)


class Use(fw.Case):
    def setUp(self):
        super().setUp()
        self.c = self.daemon().client()

    def falls(self, model, id, data, piece):
        """Mean surprise of the first and of the last piece."""
        means = [model.learn(self.c, id, data[i:i + piece])["surprise"]["mean"]
                 for i in range(0, len(data) - piece + 1, piece)]
        self.assertTrue(all(math.isfinite(m) for m in means))
        return means[0], means[-1]

    def test_surprise_falls_as_prose_and_a_log_are_read(self):
        for preset, name, last in (("text", "prose.txt", 3.2), ("auto", "prose.txt", 3.2),
                                   ("log", "system.log", 1.5), ("auto", "system.log", 1.5)):
            m = s.Model("x", "bytes", {"preset": preset}, s.text)
            m.create(self.c, f"{preset}-{name}")
            a, b = self.falls(m, f"{preset}-{name}", sample(name, 60000), 3000)
            self.assertLess(b, a * 0.85, (preset, name))
            self.assertLess(b, last, (preset, name))

    def test_surprise_falls_on_events_and_the_likely_ones_come(self):
        data = sample("events.u16", 40000)
        ids = list(struct.unpack(f"<{len(data) // 2}H", data))
        m = s.Model("x", "events", {}, s.events)
        m.create(self.c, "e")
        a, b = self.falls(m, "e", ids[:15000], 1000)
        self.assertLess(b, a)
        hits = 0
        for x in ids[15000:15200]:
            top = self.c.post("e", "predict", {"top_logprobs": 1})["top"]
            hits += top[0]["token"] == x
            m.learn(self.c, "e", [x], durability="async")
        self.assertGreater(hits, 20)

    def test_a_generated_stream_of_events_is_predicted(self):
        s.EVENTS.create(self.c, "e")
        s.EVENTS.learn(self.c, "e", s.events(6000))
        x = s.events(6500)[6000:]
        hits, last = 0, s.events(6000)[-1]
        for t in x[:100]:
            top = self.c.post("e", "predict", {"top_logprobs": 2})["top"]
            hits += t in [y["token"] for y in top]
            last = t
            s.EVENTS.learn(self.c, "e", [last], durability="async")
        self.assertGreater(hits, 65)  # 7 of 8 follow the rule of two

    def test_ten_foreign_lines_hidden_in_a_log_are_among_the_twenty_most_surprising(self):
        lines = sample("system.log", 300000).splitlines(True)[:-1]
        foreign = sample("foreign.log", 100000).splitlines(True)[:10]
        self.assertEqual(len(foreign), 10)
        usual, test = lines[:len(lines) * 2 // 3], lines[len(lines) * 2 // 3:]
        step = len(test) // 11
        for i, x in enumerate(foreign):
            test.insert((i + 1) * step + i, x)
        self.c.create("log", "bytes", {"preset": "log"})
        self.c.post("log", "learn", b"".join(usual), type="text/plain")
        got = self.c.post("log", "learn", b"".join(test), type="text/plain", surprise="lines")
        scored = got["surprise"]["lines"]
        self.assertEqual(len(scored), len(test))
        top = sorted(range(len(test)), key=lambda i: -scored[i]["bits"])[:20]
        self.assertEqual(sum(test[i] in foreign for i in top), 10)

    def test_a_memory_gives_back_what_was_written_and_keeps_what_it_can_hold(self):
        m = s.associative("delta", 1, 16, 4)
        m.create(self.c, "m")
        keys = [[float(i == j) for j in range(16)] for i in range(16)]
        values = [[float(i), float(-i), i / 2, 1.0] for i in range(16)]
        self.c.post("m", "learn", {"keys": keys, "values": values})
        got = self.c.post("m", "recall", {"queries": keys})["values"]
        self.assertEqual([v[0] for v in got], values)
        self.c.post("m", "learn", {"keys": [keys[3]], "values": [[9.0, 9.0, 9.0, 9.0]]})
        got = self.c.post("m", "recall", {"queries": [keys[3], keys[4]]})["values"]
        self.assertEqual(got, [[[9.0] * 4], [values[4]]])

    def test_a_gate_makes_a_memory_forget(self):
        m = s.associative("gated_delta", 1, 4, 2)
        m.create(self.c, "m")
        key = [[1.0, 0, 0, 0], [0, 1.0, 0, 0]]
        self.c.post("m", "learn", {"keys": key[:1], "values": [[8.0, 4.0]]})
        self.c.post("m", "learn", {"keys": key[1:], "values": [[1.0, 1.0]],
                                   "log_g": [math.log(0.5)]})
        got = self.c.post("m", "recall", {"queries": key})["values"]
        for x, want in zip(got[0][0] + got[1][0], (4.0, 2.0, 1.0, 1.0), strict=True):
            self.assertAlmostEqual(x, want, places=5)

    def test_greedy_generation_continues_a_pattern(self):
        # No word follows two others in turn: frozen reading does not see what it has just read.
        line = b"every quick brown fox jumps over my lazy dog; "
        self.c.create("a", "bytes", {"preset": "text"})
        self.c.post("a", "learn", line * 40, type="text/plain")
        got = self.c.post("a", "generate", {"max_tokens": 2 * len(line), "temperature": 0})
        self.assertEqual(got["text"].encode(), line * 2)


if __name__ == "__main__":
    fw.main()
