#!/usr/bin/python3
"""Streams of bytes with an expert at the gates: the dense one, and a checkpoint.

The checkpoint is one of random numbers, made here; what a trained one is worth is tested where
data/models/byte-lm is."""
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import checkpoints  # noqa: E402
import fw  # noqa: E402
import streams as s  # noqa: E402

MIB = 1 << 20


class Expert(fw.Case):
    def setUp(self):
        super().setUp()
        self.models = tempfile.mkdtemp(prefix="fw-models-")
        self.addCleanup(shutil.rmtree, self.models)
        checkpoints.make_gpt2(self.models)

    def serve(self):
        self.d = self.daemon("--models-dir", self.models)
        self.c = self.d.client()

    def learn(self, id, text, **query):
        return self.c.post(id, "learn", text, type="text/plain", **query)

    def agree(self, id, text):
        """score?adapt, learn and predict say the same to the bit."""
        self.learn(id, text[:2000])
        rest = text[2000:2300]
        before = self.c.hash(id)
        adapted = self.c.post(id, "score", rest, type="text/plain", surprise="tokens",
                              adapt=True)["surprise"]["tokens"]
        frozen = self.c.post(id, "score", rest, type="text/plain",
                             surprise="tokens")["surprise"]["tokens"]
        p = self.c.post(id, "predict", {"full": True})
        self.assertEqual(self.c.hash(id), before)
        learned = self.learn(id, rest, surprise="tokens")["surprise"]["tokens"]
        self.assertEqual(adapted, learned)
        self.assertEqual(frozen[0], learned[0])
        self.assertAlmostEqual(-p["logprobs"][rest[0]] / 0.6931471805599453, learned[0])

    def keep(self, id, config, text):
        """Cuts, kill -9, export and import, forks: one state."""
        self.c.create(id, "bytes", config)
        self.agree(id, text)
        hash = self.c.hash(id)
        self.d.restart(hard=True)
        self.c = self.d.client()
        self.assertEqual(self.c.hash(id), hash)
        self.c.create(id + "-cut", "bytes", config)
        for x in s.cut(text[:2300], self.random, 700):
            self.learn(id + "-cut", x)
        self.assertEqual(self.c.hash(id + "-cut"), hash)
        copy = self.c.export(id)
        self.learn(id, b"what the import takes back")
        self.c.ok("PUT", f"/v1/sessions/{id}/import", copy, type="application/vnd.safetensors")
        self.assertEqual(self.c.hash(id), hash)
        self.assertEqual(self.c.facts(id)["state_bytes"], config["state_bytes"])

    def test_the_dense_expert_keeps_every_promise(self):
        self.serve()
        self.keep("a", {"expert": "dense", "state_bytes": MIB}, s.text(3000))
        names = self.c.get("a", "inspect")["heads"]["name"]
        self.assertEqual(names[-1], "dense")

    def test_a_checkpoint_as_expert_keeps_every_promise(self):
        self.serve()
        self.keep("a", {"expert": "noise", "state_bytes": MIB}, s.text(3000))
        self.assertEqual(self.c.get("a", "inspect")["heads"]["name"][-1], "expert")
        config = self.c.facts("a")["config"]
        self.assertEqual(config["expert"], "noise")
        r = self.c.call("POST", "/v1/sessions", {"id": "b", "model": "bytes", "config":
                                                 {**config, "weights": "0" * 32}})
        self.assertEqual(self.refused(r, 422)["reason"], "other_weights")

    def test_sixteen_mebibytes_have_the_dense_expert_and_the_others_none(self):
        self.serve()
        for n, expert in ((MIB // 4, "none"), (4 * MIB, "none"), (16 * MIB, "dense")):
            facts = self.c.create(f"s{n}", "bytes", {"state_bytes": n})
            self.assertEqual((facts["state_bytes"], facts["config"]["expert"]), (n, expert))

    def test_what_is_no_expert_is_refused_by_name(self):
        checkpoints.make_gpt2(self.models, "narrow", vocab=100)
        shutil.copytree(os.path.join(self.models, "noise"), os.path.join(self.models, "broken"))
        os.remove(os.path.join(self.models, "broken", "model.safetensors"))
        self.serve()
        for name in ("nobody", "narrow", "broken", 7):
            r = self.c.call("POST", "/v1/sessions",
                            {"id": "a", "model": "bytes", "config": {"expert": name}})
            self.assertEqual(self.refused(r, 422)["param"], "config.expert", r)

    def test_without_its_weights_a_session_is_corrupt_until_they_are_back(self):
        self.serve()
        self.c.create("a", "bytes", {"expert": "noise", "state_bytes": MIB})
        self.learn("a", s.text(500))
        hash, away = self.c.hash("a"), os.path.join(self.d.top, "away")
        self.assertEqual(self.d.stop(), 0)
        os.rename(os.path.join(self.models, "noise"), away)
        self.d.start()
        self.c = self.d.client()
        r = self.c.call("POST", "/v1/sessions/a/learn", b"x", type="text/plain")
        self.assertEqual(self.refused(r, 500)["reason"], "state_corrupt")
        self.assertEqual(self.d.stop(), 0)
        shutil.move(away, os.path.join(self.models, "noise"))
        self.d.start()
        self.c = self.d.client()
        self.assertEqual(self.c.hash("a"), hash)

    def test_a_trained_byte_model_and_the_stream_beat_each_alone(self):
        if not checkpoints.make_own(self.models, "byte-lm"):
            self.skipTest("no data/models/byte-lm")
        self.serve()
        self.c.create("stream", "bytes")
        self.c.create("model", "byte-lm")
        self.c.create("both", "bytes", {"expert": "byte-lm"})
        bits = {id: self.learn(id, s.text(10000))["surprise"]["total"]
                for id in ("stream", "model", "both")}
        self.assertLess(bits["both"], min(bits["stream"], bits["model"]))


if __name__ == "__main__":
    fw.main()
