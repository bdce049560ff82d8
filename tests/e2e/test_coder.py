#!/usr/bin/python3
"""An arithmetic coder driven by nothing but predict(full) and learn.

If it round-trips, p was the same pure function of the state both times; if its length is the
reported surprise, the surprise is honest."""
import bisect
import itertools
import math
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

BITS = 62
TOP, HALF, QUARTER = 1 << BITS, 1 << (BITS - 1), 1 << (BITS - 2)


def cumulative(logprobs):
    """Integer bounds of every token: floor(p 2^44) + 1, so no token is impossible."""
    exp, one = math.exp, float(1 << 44)
    return [0, *itertools.accumulate(int(exp(x) * one) + 1 for x in logprobs)]


class Encoder:
    """Witten, Neal, Cleary (1987): an interval, and bits when its half is known."""

    def __init__(self):
        self.low, self.high, self.pending, self.out = 0, TOP - 1, 0, []

    def put(self, bounds, token):
        span, total = self.high - self.low + 1, bounds[-1]
        self.high = self.low + span * bounds[token + 1] // total - 1
        self.low += span * bounds[token] // total
        while True:
            if self.high < HALF:
                self._bit(0)
            elif self.low >= HALF:
                self._bit(1)
                self.low, self.high = self.low - HALF, self.high - HALF
            elif self.low >= QUARTER and self.high < 3 * QUARTER:
                self.pending += 1
                self.low, self.high = self.low - QUARTER, self.high - QUARTER
            else:
                return
            self.low, self.high = 2 * self.low, 2 * self.high + 1

    def _bit(self, b):
        self.out += [b] + [1 - b] * self.pending
        self.pending = 0

    def finish(self):
        self.pending += 1
        self._bit(0 if self.low < QUARTER else 1)
        return self.out


class Decoder:
    def __init__(self, bits):
        self.bits = itertools.chain(bits, itertools.repeat(0))
        self.low, self.high, self.code = 0, TOP - 1, 0
        for _ in range(BITS):
            self.code = 2 * self.code + next(self.bits)

    def get(self, bounds):
        span, total = self.high - self.low + 1, bounds[-1]
        value = ((self.code - self.low + 1) * total - 1) // span
        token = bisect.bisect_right(bounds, value) - 1
        self.high = self.low + span * bounds[token + 1] // total - 1
        self.low += span * bounds[token] // total
        while True:
            if self.high < HALF:
                off = 0
            elif self.low >= HALF:
                off = HALF
            elif self.low >= QUARTER and self.high < 3 * QUARTER:
                off = QUARTER
            else:
                return token
            self.low, self.high = 2 * (self.low - off), 2 * (self.high - off) + 1
            self.code = 2 * (self.code - off) + next(self.bits)


class Coder(fw.Case):
    def setUp(self):
        super().setUp()
        self.c = self.daemon().client()

    def full(self, id, prefix=None):
        """(logprobs, top) as safetensors F64: every bit of every double."""
        body = {"full": True, **({"prefix": prefix} if prefix is not None else {})}
        r = self.c.call("POST", f"/v1/sessions/{id}/predict", body,
                        headers={"Accept": "application/vnd.safetensors"})
        assert r.status == 200, r
        dtype, shape, data = s.st_read(r.body)[0]["logprobs"]
        self.assertEqual((dtype, shape[-1]), ("F64", len(data) // 8))
        return s.doubles(data)

    def sane(self, id, logprobs, count=20):
        """A distribution: it sums to 1, nothing is impossible, top_logprobs are its head."""
        self.assertLess(abs(math.fsum(map(math.exp, logprobs)) - 1), 1e-9)
        self.assertTrue(all(-745 < x <= 0 for x in logprobs))  # exp(-745) > 0
        top = self.c.post(id, "predict", {"top_logprobs": count})["top"]
        head = sorted(range(len(logprobs)), key=lambda i: (-logprobs[i], i))[:count]
        self.assertEqual([(t["token"], t["logprob"]) for t in top],
                         [(i, logprobs[i]) for i in head])

    def round_trip(self, model, tokens, every=97):
        model.create(self.c, "in")
        model.create(self.c, "out")
        enc, surprise = Encoder(), 0.0
        for i, t in enumerate(tokens):
            p = self.full("in")
            if i % every == 0:
                self.sane("in", p)
            enc.put(cumulative(p), t)
            r = model.learn(self.c, "in", tokens[i:i + 1], durability="async")
            self.assertEqual(r["surprise"]["total"], -p[t] / math.log(2))
            surprise += r["surprise"]["total"]
        bits = enc.finish()
        self.assertLess(abs(len(bits) - surprise), 0.01 * surprise + 64)
        dec, got = Decoder(bits), []
        for _ in tokens:
            got.append(dec.get(cumulative(self.full("out"))))
            model.learn(self.c, "out", got[-1:], durability="async")
        self.assertEqual(got, list(tokens))
        self.assertEqual(self.c.hash("in"), self.c.hash("out"))

    def test_two_kilobytes_of_text_come_back_from_the_coded_bits(self):
        self.round_trip(s.AUTO, s.text(1500) + s.log(548))

    def test_five_hundred_events_come_back_from_the_coded_bits(self):
        self.round_trip(s.EVENTS, s.events(500))

    def test_events_of_the_whole_vocabulary_come_back_from_the_coded_bits(self):
        wide = s.Model("events65536", "events", {"vocab": 65536, "state_bytes": s.MIB},
                       lambda n, seed=1: [x * 218 + 7 for x in s.events(n, seed)])
        self.round_trip(wide, wide.tokens(100 if fw.sanitized() else 500), every=97)

    def test_json_and_safetensors_carry_the_same_doubles(self):
        s.AUTO.create(self.c, "a")
        s.AUTO.learn(self.c, "a", s.text(700))
        text = self.c.post("a", "predict", {"full": True})["logprobs"]
        self.assertEqual(text, list(self.full("a")))

    def test_frozen_score_equals_predict_after_each_prefix_to_the_bit(self):
        for m in (s.AUTO, s.TEXT, s.LOG, s.EVENTS):
            with self.subTest(m.name):
                m.create(self.c, m.name)
                m.learn(self.c, m.name, m.tokens(2000))
                x = m.tokens(60, 9)
                bits = m.score(self.c, m.name, x, surprise="tokens")["surprise"]["tokens"]
                want = [-self.full(m.name, list(x[:i]))[t] / math.log(2)
                        for i, t in enumerate(x)]
                self.assertEqual(bits, want)

    def test_an_adapting_score_equals_learn_to_the_bit(self):
        for m in s.MODELS:
            with self.subTest(m.name):
                name, word = m.name.replace(" ", "-"), "surprise"
                if m.kind == "associative":
                    word = "residual"
                m.create(self.c, name)
                m.learn(self.c, name, m.tokens(300))
                x = m.tokens(80, 9)
                scored = m.score(self.c, name, x, surprise="tokens", adapt=True)
                learned = m.learn(self.c, name, x, surprise="tokens")
                self.assertEqual(scored[word], learned[word])
                self.assertEqual(scored["version"] + 1, learned["version"])


if __name__ == "__main__":
    fw.main()
