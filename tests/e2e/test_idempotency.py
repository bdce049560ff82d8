#!/usr/bin/python3
"""A request sent twice under one Idempotency-Key is learned once, whatever happened between."""
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402


class Idempotency(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()

    def learn(self, id, model, tokens, key, client=None, **query):
        body, type = model.body(tokens)
        return (client or self.c).call("POST", f"/v1/sessions/{id}/learn", body, type=type,
                                       headers={"Idempotency-Key": key}, **query)

    def repeated(self, id, model, tokens, key, first):
        """The same again: the first one's answer, and the state stands still."""
        before = self.c.facts(id, hash=True)
        r = self.learn(id, model, tokens, key)
        self.assertEqual(r.status, first.status, r)
        self.assertEqual(r.headers["Idempotent-Replayed"], "true", r)
        word = "surprise" if model.kind == "stream" else "residual"
        self.assertEqual(r.json["version"], first.json["version"])
        self.assertEqual(r.json[word]["mean"], first.json[word]["mean"])
        after = self.c.facts(id, hash=True)
        for k in ("hash", "version", "tokens_seen"):
            self.assertEqual(after[k], before[k], k)

    def test_a_repeat_answers_as_the_first_did_in_every_stage_of_its_life(self):
        for m in (s.AUTO, s.EVENTS, s.GATED):
            id, x = m.name.split()[0], m.tokens(40)
            self.now = id
            m.create(self.c, id)
            m.learn(self.c, id, m.tokens(100, 2))
            first = self.learn(id, m, x, "k")
            self.assertNotIn("Idempotent-Replayed", first.headers)
            self.repeated(id, m, x, "k", first)
            m.learn(self.c, id, m.tokens(10, 3))
            self.repeated(id, m, x, "k", first)
            self.d.restart(hard=True)  # the mean is computed again by replay
            self.c = self.d.client()
            self.repeated(id, m, x, "k", first)
            self.c.post(id, "checkpoint")  # the journal row is gone
            self.repeated(id, m, x, "k", first)
            self.d.restart()
            self.c = self.d.client()
            self.repeated(id, m, x, "k", first)
            self.c.post(id, "snapshots", {"name": "now"})
            file = self.c.export(id)
            m.learn(self.c, id, m.tokens(5, 4))
            self.c.post(id, "snapshots/now/restore")
            self.repeated(id, m, x, "k", first)
            self.c.ok("PUT", f"/v1/sessions/{id}/import", file,
                      type="application/vnd.safetensors")
            self.repeated(id, m, x, "k", first)
            self.d.restart(hard=True)
            self.c = self.d.client()
            self.repeated(id, m, x, "k", first)

    def test_another_body_under_the_same_key_is_refused(self):
        for m in (s.AUTO, s.DELTA):
            id = m.name.split()[0]
            m.create(self.c, id)
            first = self.learn(id, m, m.tokens(40), "k")
            for stage in ("journal", "checkpoint", "restart"):
                before = self.c.hash(id)
                self.refused(self.learn(id, m, m.tokens(41), "k"), 422)
                self.assertEqual(self.c.hash(id), before, stage)
                self.repeated(id, m, m.tokens(40), "k", first)
                if stage == "journal":
                    self.c.post(id, "checkpoint")
                else:
                    self.d.restart(hard=True)
                    self.c = self.d.client()

    def test_a_repeat_of_what_still_runs_is_409_with_retry_after(self):
        s.TEXT.create(self.c, "a")
        x, replies = s.text(1500000), []
        with fw.Workers() as w:
            for _ in range(2):
                w.run(lambda: replies.append(self.learn("a", s.TEXT, x, "k", self.d.client())))
        refused, done = sorted(replies, key=lambda r: -r.status)
        self.assertEqual((refused.status, done.status), (409, 200), replies)
        self.assertGreaterEqual(int(refused.headers["Retry-After"]), 0)
        self.repeated("a", s.TEXT, x, "k", done)
        self.assertEqual(self.c.facts("a")["version"], 1)
        self.assertEqual(self.c.facts("a")["tokens_seen"], len(x))

    def test_keys_belong_to_one_incarnation_of_one_session(self):
        x = s.text(50)
        for id in ("a", "b"):
            s.AUTO.create(self.c, id)
        first = self.learn("a", s.AUTO, x, "k")
        self.assertNotIn("Idempotent-Replayed", self.learn("b", s.AUTO, x, "k").headers)
        self.c.post("a", "fork", {"id": "f"})
        r = self.learn("f", s.AUTO, x, "k")
        self.assertNotIn("Idempotent-Replayed", r.headers)
        self.assertEqual((r.json["version"], r.json["tokens_seen"]), (2, 100))
        self.repeated("a", s.AUTO, x, "k", first)
        self.c.ok("DELETE", "/v1/sessions/a")
        s.AUTO.create(self.c, "a")
        r = self.learn("a", s.AUTO, x, "k")
        self.assertNotIn("Idempotent-Replayed", r.headers)
        self.assertEqual(r.json["version"], 1)

    def test_the_last_thousand_keys_are_remembered(self):
        m = s.DELTA
        m.create(self.c, "m")
        first = self.learn("m", m, m.tokens(2), "first")
        for i in range(999):
            r = self.learn("m", m, m.tokens(1, i), f"k{i}", durability="async")
            self.assertEqual(r.status, 200, r)
        self.repeated("m", m, m.tokens(2), "first", first)
        self.c.post("m", "checkpoint")
        self.d.restart()
        self.c = self.d.client()
        self.repeated("m", m, m.tokens(2), "first", first)

    def test_keys_have_1_to_255_printable_characters(self):
        m = s.DELTA
        m.create(self.c, "m")
        for bad in ("", "x" * 256, "tab\tinside", "caf\u00e9"):
            self.refused(self.learn("m", m, m.tokens(1), bad), 400, 422)
        self.assertEqual(self.c.facts("m")["version"], 0)
        self.assertEqual(self.learn("m", m, m.tokens(1), "x" * 255).status, 200)
        self.assertEqual(self.learn("m", m, m.tokens(1), "a key, with: ~!").status, 200)


if __name__ == "__main__":
    fw.main()
