#!/usr/bin/python3
"""Checkpoints over HTTP: a session of a transformer keeps every promise that the others keep.

A model of random numbers is made here, so most of this runs in any clone; what needs a file of
$FW_SHARED/models is skipped without it."""
import json
import math
import os
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
import checkpoints  # noqa: E402
import fw  # noqa: E402
import streams as s  # noqa: E402

TEXT = (b"The state of a session is what it has read. " * 5)[:200]


class Base(fw.Case):
    def setUp(self):
        super().setUp()
        self.models = tempfile.mkdtemp(prefix="fw-models-")
        self.addCleanup(shutil.rmtree, self.models)

    def serve(self, *flags):
        self.d = self.daemon("--models-dir", self.models, *flags)
        self.c = self.d.client()
        return self.c

    def needs(self, name):
        if not checkpoints.make_shared(self.models, name):
            self.skipTest(f"no {name} in {checkpoints.SHARED}/models")


class Noise(Base):
    """Whatever holds for any checkpoint, with one of random numbers."""

    def setUp(self):
        super().setUp()
        checkpoints.make_gpt2(self.models)
        self.serve().create("a", "noise")

    def learn(self, id, text, **query):
        return self.c.post(id, "learn", text, type="text/plain", **query)

    def test_a_model_and_its_sessions_tell_what_they_are(self):
        want = {"kind": "transformer", "architecture": "gpt2", "vocab": 256, "d_model": 16,
                "layers": 2, "heads": 2, "d_k": 8, "tokenizer": "bytes", "max_context": 48,
                "memory": "softmax", "off_distribution": False}
        listed = {m["id"]: m for m in self.c.ok("GET", "/v1/models")["data"]}
        for facts in (listed["noise"], self.c.ok("GET", "/v1/models/noise"), self.c.facts("a")):
            self.assertEqual({k: facts[k] for k in want}, want)
            self.assertEqual(facts["weight_bytes"], 4 * facts["parameters"])
            self.assertIn("emptied", facts["when_full"])
        short = self.c.create("b", "noise", {"max_context": 7})
        self.assertEqual(short["max_context"], 7)
        self.assertLess(short["state_bytes"], listed["noise"]["state_bytes"])

    def test_the_bytes_do_not_depend_on_how_a_stream_is_cut(self):
        self.c.create("b", "noise")
        whole = self.learn("a", TEXT, surprise="tokens", hash=True)
        cut = [self.learn("b", x, surprise="tokens")["surprise"]["tokens"]
               for x in s.cut(TEXT, self.random, 40)]
        self.assertEqual(sum(cut, []), whole["surprise"]["tokens"])
        self.assertEqual(self.c.hash("b"), whole["hash"])
        self.assertEqual(self.c.facts("b")["tokens_seen"], len(TEXT))

    def test_score_and_predict_agree_with_learn_to_the_bit_and_write_nothing(self):
        self.learn("a", TEXT[:61])
        before = self.c.hash("a")
        score = [self.c.post("a", "score", TEXT[61:], type="text/plain", surprise="tokens",
                             adapt=adapt)["surprise"]["tokens"] for adapt in (False, True)]
        ahead = self.c.post("a", "predict", {"prefix": TEXT[61:90].decode(), "full": True})
        top = self.c.post("a", "predict", {"prefix": TEXT[61:90].decode(), "top_logprobs": 9})
        self.c.post("a", "generate", {"max_tokens": 70, "seed": 3})
        self.c.get("a", "inspect")
        self.assertEqual(self.c.hash("a"), before)
        self.assertEqual(ahead["top"][:9], top["top"])
        self.assertAlmostEqual(sum(math.exp(x) for x in ahead["logprobs"]), 1, places=9)
        got = self.learn("a", TEXT[61:], surprise="tokens")["surprise"]["tokens"]
        self.assertEqual(score, [got, got])
        self.assertEqual(-ahead["logprobs"][TEXT[90]] / math.log(2), got[29])

    def test_before_the_first_token_every_one_is_as_likely(self):
        p = self.c.post("a", "predict", {"full": True})["logprobs"]
        self.assertEqual(set(p), {p[0]})
        self.assertAlmostEqual(p[0], -math.log(256), places=12)

    def test_text_tokens_bytes_and_files_are_the_same_stream(self):
        text = TEXT[:50] + "\u20ac".encode()
        want = self.learn("a", text, hash=True)["hash"]
        ids = {"tokens": ("U32", [len(text)], s.array.array("I", list(text)).tobytes())}
        bodies = (({"text": text.decode()}, None), ({"tokens": list(text)}, None),
                  (text, "application/octet-stream"),
                  (s.st_write(ids), "application/vnd.safetensors"))
        for i, (body, type) in enumerate(bodies):
            self.c.create(f"x{i}", "noise")
            self.assertEqual(self.c.post(f"x{i}", "learn", body, type=type, hash=True)["hash"],
                             want)

    def test_what_is_sampled_has_tokens_text_and_bytes_and_can_be_learned(self):
        self.learn("a", TEXT)
        self.c.ok("POST", "/v1/sessions/a/fork", {"id": "b"})
        body = {"max_tokens": 60, "seed": 5, "temperature": 0.8, "prefix": "Once"}
        got = self.c.post("a", "generate", body)
        self.assertEqual(got["text"], bytes(got["tokens"]).decode(errors="replace"))
        again = self.c.post("a", "generate", {**body, "learn": True})
        self.assertEqual(again["tokens"], got["tokens"])
        self.c.post("b", "learn", {"tokens": got["tokens"]})
        self.assertEqual(self.c.hash("a"), self.c.hash("b"))
        self.assertEqual(self.c.facts("a")["tokens_seen"], len(TEXT) + 60)

    def test_what_is_wrong_is_refused_and_learns_nothing(self):
        self.learn("a", TEXT)
        before = self.c.hash("a")
        path = "/v1/sessions/a/"
        for verb, body, reason in (("learn", {"tokens": [1, 256]}, "token_out_of_range"),
                                   ("learn", {"tokens": [1, -1]}, "token_out_of_range"),
                                   ("learn", {"tokens": []}, "empty_body"),
                                   ("predict", {"prefix": [999]}, "token_out_of_range"),
                                   ("recall", {"queries": [[1.0]]}, None)):
            e = self.refused(self.c.call("POST", path + verb, body), 422)
            if reason:
                self.assertEqual(e["reason"], reason)
        self.assertEqual(self.c.hash("a"), before)
        for config, param in (({"memory": "wkv7"}, "config.memory"),
                              ({"memory": "nothing"}, "config.memory"),
                              ({"max_context": 49}, "config.max_context"),
                              ({"depth": 2}, "config.depth")):
            r = self.c.call("POST", "/v1/sessions", {"model": "noise", "config": config})
            self.assertEqual(self.refused(r, 422)["param"], param)

    def test_another_rule_is_said_to_be_off_the_training_distribution(self):
        got = self.c.create("b", "noise", {"memory": "linear"})
        self.assertEqual((got["memory"], got["off_distribution"]), ("linear", True))
        r = self.learn("b", TEXT)
        self.assertTrue(math.isfinite(r["surprise"]["mean"]))
        self.assertEqual(self.c.get("b", "inspect")["memory"], "linear")

    def test_inspect_and_tensors_show_each_layer(self):
        self.learn("a", TEXT)
        got = self.c.get("a", "inspect")
        for layer in "01":
            head = got["blocks"][layer]
            self.assertEqual(head["nonfinite"], [0, 0])
            for key in ("norm", "effective_rank", "update_norm"):
                self.assertEqual(len(head[key]), 2)
                self.assertTrue(all(math.isfinite(x) for x in head[key]))
        names = [t["name"] for t in self.c.get("a", "tensors")["data"]]
        self.assertIn("hidden", names)
        for name in names:
            self.assertEqual(self.c.call("GET", f"/v1/sessions/a/tensors/{name}").status, 200)

    def test_copies_snapshots_files_and_a_kill_keep_every_byte(self):
        self.learn("a", TEXT[:100])
        at = self.c.hash("a")
        self.c.post("a", "snapshots", {"name": "half"})
        file = self.c.export("a")
        self.learn("a", TEXT[100:])
        end = self.c.hash("a")
        self.d.restart(hard=True)
        self.c = self.d.client()
        self.assertEqual(self.c.hash("a"), end)
        self.c.post("a", "snapshots/half/restore")
        self.assertEqual(self.c.hash("a"), at)
        self.c.create("b", "noise")
        self.c.ok("PUT", "/v1/sessions/b/import", file, type="application/vnd.safetensors")
        self.learn("b", TEXT[100:])
        self.assertEqual(self.c.hash("b"), end)
        for change in (b"hidden", b"tokens"):  # a name that is not the layout's
            bad = file.replace(change, change[::-1], 1)
            r = self.c.call("PUT", "/v1/sessions/b/import", bad,
                            type="application/vnd.safetensors")
            self.refused(r, 422)
        self.assertEqual(self.c.hash("b"), end)


class Catalogue(Base):
    def test_a_bad_model_is_listed_with_its_error_and_stops_nobody(self):
        checkpoints.make_gpt2(self.models, "good")
        path = checkpoints.make_gpt2(self.models, "short")
        with open(os.path.join(path, "model.safetensors"), "r+b") as f:
            f.truncate(5000)
        os.mkdir(os.path.join(self.models, "empty"))
        checkpoints.make(self.models, "strange", {"architecture": "perceptron"}, b"")
        checkpoints.make_gpt2(self.models, "bytes")
        c = self.serve()
        listed = {}
        for m in c.ok("GET", "/v1/models")["data"]:
            listed.setdefault(m["id"], []).append(m)
        self.assertNotIn("error", listed["good"][0])
        for name, word in (("short", "model.safetensors"), ("empty", "config.json"),
                           ("strange", "config.json")):
            self.assertIn(word, listed[name][0]["error"])
            e = self.refused(c.call("POST", "/v1/sessions", {"model": name}), 422)
            self.assertIn(word, e["message"])
            self.assertIn(name, self.d.stderr())
        self.assertEqual([m["kind"] for m in listed["bytes"]], ["stream", "transformer"])
        self.assertIn("built-in", listed["bytes"][1]["error"])
        self.assertEqual(c.create("b", "bytes")["kind"], "stream")
        c.create("a", "good")
        c.post("a", "learn", {"text": "still here"})
        self.refused(c.call("POST", "/v1/sessions", {"model": "nobody"}), 404)

    def test_a_session_whose_model_is_gone_says_so_and_comes_back_with_it(self):
        path = checkpoints.make_gpt2(self.models)
        c = self.serve()
        c.create("a", "noise")
        c.post("a", "learn", {"text": "remember"})
        before = c.hash("a")
        os.rename(path, path + "~")
        c = self.d.restart().client()
        e = self.refused(c.call("POST", "/v1/sessions/a/learn", {"tokens": [1]}), 500)
        self.assertEqual(e["reason"], "state_corrupt")
        self.assertIn("noise", e["message"])
        os.rename(path + "~", path)
        c = self.d.restart().client()
        self.assertEqual(c.hash("a"), before)

    def test_a_state_is_never_read_with_weights_that_did_not_make_it(self):
        path = checkpoints.make_gpt2(self.models)
        c = self.serve()
        weights = c.create("a", "noise")["config"]["weights"]
        c.post("a", "learn", {"text": "remember"})
        before, file = c.hash("a"), c.export("a")
        os.rename(path, self.models + "/.noise")
        checkpoints.make_gpt2(self.models, seed=2)
        c = self.d.restart().client()
        self.refused(c.call("POST", "/v1/sessions/a/learn", {"tokens": [1]}), 500)
        self.refused(c.call("POST", "/v1/sessions", {"model": "noise", "config": {
            "weights": weights}}), 422)
        self.assertNotEqual(c.create("b", "noise")["config"]["weights"], weights)
        r = c.call("PUT", "/v1/sessions/b/import", file, type="application/vnd.safetensors")
        self.refused(r, 422)
        shutil.rmtree(path)
        os.rename(self.models + "/.noise", path)
        c = self.d.restart().client()
        self.assertEqual(c.hash("a"), before)

    def test_a_state_is_never_read_with_settings_that_did_not_make_it(self):
        path = checkpoints.make_gpt2(self.models)
        c = self.serve()
        c.create("a", "noise")
        c.post("a", "learn", {"text": "remember"})
        before = c.hash("a")
        with open(path + "/config.json") as f:
            config = f.read()
        for text in (json.dumps({**json.loads(config), "norm_eps": 0.1}), config):
            with open(path + "/config.json", "w") as f:
                f.write(text)
            c = self.d.restart().client()
            if text != config:
                self.refused(c.call("POST", "/v1/sessions/a/learn", {"tokens": [1]}), 500)
        self.assertEqual(c.hash("a"), before)


class Real(Base):
    def test_rwkv7_gives_the_logits_of_its_reference(self):
        self.needs("rwkv7-tiny-834k")
        want, _ = s.st_read(checkpoints.shared("rwkv7-tiny-834k.expected"))
        tokens = list(s.array.array({"I32": "i", "I64": "q", "U32": "I", "U8": "B"}
                                    [want["tokens"][0]], want["tokens"][2]))
        logits = s.array.array("f", want["logits_last"][2])
        c = self.serve()
        c.create("a", "rwkv7-tiny-834k")
        c.post("a", "learn", {"tokens": tokens})
        got = c.post("a", "predict", {"full": True})["logprobs"]
        most = max(logits)
        norm = most + math.log(sum(math.exp(x - most) for x in logits))
        worst = max(abs(g - (x - norm)) for g, x in zip(got, logits, strict=True))
        self.assertLess(worst, 1e-4)

    def test_a_byte_model_knows_english(self):
        self.needs("byte-gdn-dev")
        with open(os.path.join(fw.TESTS, "../data/prose.txt"), "rb") as f:
            text = f.read(8000)
        c = self.serve()
        c.create("a", "byte-gdn-dev")
        self.assertLess(c.post("a", "learn", text, type="text/plain")["surprise"]["mean"], 2.6)
        got = c.post("a", "generate", {"max_tokens": 200, "temperature": 0.7, "seed": 1})
        self.assertGreater(sum(x.isalpha() or x == " " for x in got["text"]), 150)


if __name__ == "__main__":
    fw.main()
