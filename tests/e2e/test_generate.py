#!/usr/bin/python3
"""generate: every sampling option and what it refuses."""
import math
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

LESSON = b"one two. " * 20 + b"one"


class Sampling(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", LESSON, type="text/plain")

    def gen(self, n=20, **options):
        return self.c.post("a", "generate", {"max_tokens": n, **options})

    def test_a_stop_string_ends_the_text_before_it(self):
        whole = self.gen(temperature=0)
        self.assertEqual((whole["text"][:8], whole["finish_reason"]), (" two. on", "length"))
        for stop in (". one", [". one"], ["never", "wo. one", ". o"]):
            got = self.gen(temperature=0, stop=stop)
            self.assertEqual((got["text"], got["finish_reason"]), (" two", "stop"), stop)
            self.assertEqual(bytes(got["tokens"]).decode(), got["text"])
        got = self.gen(temperature=0, stop_tokens=[ord("o")])
        self.assertEqual((got["text"], got["finish_reason"]), (" tw", "stop"))
        got = self.gen(temperature=0, stop=" ", learn=True)
        self.assertEqual((got["text"], got["version"], got["surprise"]["mean"]), ("", 1, 0))

    def test_options_of_sampling_restrict_what_is_drawn(self):
        heat = 20  # the lesson was learned well
        p = [x / heat for x in self.c.post("a", "predict", {"full": True})["logprobs"]]
        best = sorted(range(256), key=lambda i: (-p[i], i))

        def drawn(**o):
            return {self.gen(1, temperature=heat, seed=i, **o)["tokens"][0] for i in range(120)}

        self.assertGreater(len(drawn()), 40)
        self.assertEqual(drawn(top_k=1), {best[0]})
        self.assertEqual(drawn(top_k=3), set(best[:3]))
        w = [math.exp(p[i]) for i in best]
        n = next(i for i in range(256) if sum(w[:i]) >= 0.5 * sum(w))
        self.assertLessEqual(drawn(top_p=0.5), set(best[:n]))
        self.assertLessEqual(drawn(min_p=0.8), {i for i in best if math.exp(p[i]) > 0.79 * w[0]})
        self.assertEqual(drawn(top_k=2, logit_bias={"7": 100, "8": 100}), {7, 8})
        self.assertEqual(drawn(top_k=2, logit_bias={str(best[0]): -100}), set(best[1:3]))
        self.assertEqual(self.gen(9, temperature=0, logit_bias={"7": 100})["tokens"], [7] * 9)

    def test_repetition_is_made_unlikely(self):
        got = self.gen(40, temperature=0, prefix="one two", repetition_penalty=100,
                       repetition_window=64)["tokens"]
        self.assertEqual(len(set(got)), 40)
        self.assertFalse(set(got) & set(b"one two"))

    def test_the_seed_decides(self):
        o = {"temperature": 20, "top_p": 0.9, "repetition_penalty": 1.1}
        self.assertEqual(self.gen(50, seed=5, **o), self.gen(50, seed=5, **o))
        self.assertNotEqual(self.gen(50, seed=5, **o), self.gen(50, seed=6, **o))

    def test_what_is_out_of_range_is_refused_by_name(self):
        for key, values in {
                "temperature": (-1, 101, "1"), "top_k": (-1, 1.5), "top_p": (0, 1.01, None),
                "min_p": (-0.1, 2), "repetition_penalty": (0, 1000),
                "repetition_window": (0, 4097), "seed": (-1, 2**63),
                "logit_bias": ([], {"x": 1}, {"256": 1}, {"07": 1}, {"7": 101}, {"7": "1"},
                               {str(i): 0 for i in range(1025)}),
                "stop": ("", [], ["a"] * 5, "x" * 257, [1], 7),
                "stop_tokens": ([], [256], [-1], ["a"], 3, [1] * 17)}.items():
            for value in values:
                r = self.c.call("POST", "/v1/sessions/a/generate", {"max_tokens": 1, key: value})
                self.now = f"{key} {value!r:.50}"
                if r.status != 400:  # a number that JSON cannot hold
                    self.assertEqual(self.refused(r, 422)["param"] in (key, "body"), True, r)
        s.EVENTS.create(self.c, "e")
        e = self.refused(self.c.call("POST", "/v1/sessions/e/generate",
                                     {"max_tokens": 1, "stop": "x"}), 422)
        self.assertEqual((e["param"], e["reason"]), ("stop", "no_text"))


if __name__ == "__main__":
    fw.main()
