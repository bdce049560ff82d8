#!/usr/bin/python3
"""One session is a queue; sessions do not wait for one another."""
import sys
import threading
import time

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

LONG = 5 << 20 if fw.FULL else 3 << 20  # bytes that take seconds
PROMPT = 2.0  # seconds, far above what it takes


class Order(fw.Case):
    def start(self, *flags):
        slow = fw.sanitized()
        self.prompt, self.long = (5 * PROMPT, LONG >> 2) if slow else (PROMPT, LONG)
        self.d = self.daemon(*flags)
        self.c = self.d.client()

    def long_learn(self, w, id, n=0):
        """Starts a learn of some seconds; returns once it runs, with where its reply goes."""
        got, sent = [], threading.Event()

        def body():
            c = self.d.client()
            c.ok("GET", "/healthz")  # connected
            sent.set()
            got.append(c.call("POST", f"/v1/sessions/{id}/learn", s.text(65536) * ((n or self.long) >> 16),
                              type="text/plain"))
        w.run(body)
        sent.wait()
        return got

    def wait_until_queued(self, id):
        """A repeat under If-Match or a fact cannot tell that it runs; metrics can."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            r = self.c.call("GET", "/metrics").body.decode()
            busy = [x for x in r.splitlines() if "queued" in x and not x.startswith("#")]
            if busy and float(busy[0].split()[-1]) >= 1:
                return
        self.fail("the long learn does not show in /metrics")

    def test_health_and_other_sessions_go_on_while_a_long_learn_runs(self):
        self.start()
        for id in "ab":
            s.TEXT.create(self.c, id)
        with fw.Workers() as w:
            got = self.long_learn(w, "a")
            self.wait_until_queued("a")
            took, during = {"health": 0.0, "learn": 0.0, "facts": 0.0}, 0
            while not got:
                for what, f in (("health", lambda: self.c.ok("GET", "/healthz")),
                                ("facts", lambda: self.c.facts("a")),
                                ("learn", lambda: s.TEXT.learn(self.c, "b", s.text(200)))):
                    began = time.monotonic()
                    f()
                    took[what] = max(took[what], time.monotonic() - began)
                during += not got
        self.assertEqual(got[0].status, 200, got)
        self.assertGreater(during, 10)
        for what, t in took.items():
            self.assertLess(t, self.prompt, what)

    def test_a_read_sees_all_requests_before_it_and_none_after_it(self):
        self.start()
        s.TEXT.create(self.c, "a")
        with fw.Workers() as w:
            got = self.long_learn(w, "a", 1 << 20)
            self.wait_until_queued("a")
            p = self.c.post("a", "predict", {})  # waits its turn
            self.assertEqual(p["version"], 1)
            self.assertEqual(self.c.facts("a", hash=True)["tokens_seen"], 1 << 20)
        self.assertEqual(got[0].status, 200)
        # Reads between learns: the version read is one that was, and never goes back.
        stop = threading.Event()

        def reader():
            c, last = self.d.client(), 0
            while not stop.is_set():
                v = c.post("a", "predict", {"top_logprobs": 1})["version"]
                if v < last:
                    raise AssertionError((v, last))
                last = v
        with fw.Workers() as w:
            for _ in range(3):
                w.run(reader)
            for i in range(100):
                r = s.TEXT.learn(self.c, "a", s.text(50, i), durability="async")
                self.assertEqual(r["version"], i + 2)
                self.assertGreaterEqual(self.c.post("a", "predict", {})["version"], i + 2)
            stop.set()

    def test_a_full_queue_is_429_with_retry_after_and_loses_nothing(self):
        self.start("--max-queue", "4")
        s.TEXT.create(self.c, "a")
        replies, lock = [], threading.Lock()

        def one():
            r = s.TEXT.body(s.text(100))
            got = self.d.client().call("POST", "/v1/sessions/a/learn", r[0], type=r[1])
            with lock:
                replies.append(got)
        with fw.Workers() as w:
            long = self.long_learn(w, "a")
            self.wait_until_queued("a")
            for _ in range(12):
                w.run(one)
        self.assertEqual(long[0].status, 200)
        full = [r for r in replies if r.status == 429]
        self.assertTrue(full)
        for r in full:
            self.assertEqual(self.refused(r, 429)["type"], "busy_error")
            self.assertGreaterEqual(int(r.headers["Retry-After"]), 0)
        done = [r for r in replies if r.status == 200]
        self.assertEqual(len(done) + len(full), 12)
        self.assertGreaterEqual(len(done), 3)
        facts = self.c.facts("a")
        self.assertEqual((facts["version"], facts["tokens_seen"]),
                         (1 + len(done), self.long + 100 * len(done)))

    def test_delete_takes_effect_at_once_and_what_ran_is_answered(self):
        self.start()
        s.TEXT.create(self.c, "a")
        fresh = self.c.hash("a")
        replies = []

        def one():
            replies.append(self.d.client().call("POST", "/v1/sessions/a/predict", {}))
        with fw.Workers() as w:
            long = self.long_learn(w, "a")
            self.wait_until_queued("a")
            for _ in range(5):
                w.run(one)
            began = time.monotonic()
            gone = self.c.call("DELETE", "/v1/sessions/a")
            if gone.status == 204 and not long:
                self.assertLess(time.monotonic() - began, self.prompt)
            self.assertEqual(gone.status, 204, gone)
            self.refused(self.c.call("GET", "/v1/sessions/a"), 404)
            s.TEXT.create(self.c, "a")
            self.assertEqual(self.c.facts("a")["version"], 0)
            self.assertEqual(self.c.hash("a"), fresh)
            s.TEXT.learn(self.c, "a", b"hello")
        self.assertIn(long[0].status, (200, 404), long)
        self.assertTrue(all(r.status in (200, 404) for r in replies), replies)
        self.assertEqual(self.c.facts("a")["tokens_seen"], 5)
        self.d.restart()
        self.c = self.d.client()
        self.assertEqual(self.c.facts("a")["tokens_seen"], 5)

    def test_async_learns_wait_for_room_and_are_all_learned_in_order(self):
        self.start("--max-async-bytes", "65536", "--journal-bytes", "100000")
        s.LOG.create(self.c, "a")
        s.LOG.create(self.c, "serial")
        parts = [s.log(20000, i) for i in range(20)]
        for i, x in enumerate(parts):
            r = s.LOG.learn(self.c, "a", x, durability="async")
            self.assertEqual(r["version"], i + 1)
            self.assertLessEqual(r["durable_version"], i + 1)
            self.assertGreaterEqual(r["durable_version"], i - 3)  # so little may be unwritten
        last = s.LOG.learn(self.c, "a", b"end")
        self.assertEqual(last["durable_version"], 21)  # a commit implies all before it
        want = s.LOG.learn(self.c, "serial", b"".join(parts) + b"end", hash=True)["hash"]
        self.assertEqual(self.c.hash("a"), want)

    def test_more_sessions_than_allowed_are_refused_and_the_others_go_on(self):
        self.start("--max-sessions", "3")
        for id in "abc":
            s.DELTA.create(self.c, id)
        e = self.refused(self.c.call("POST", "/v1/sessions", {
            "id": "d", "model": "associative", "config": s.DELTA.config}), 429, 507)
        self.assertIn("3", e["message"])
        self.refused(self.c.call("POST", "/v1/sessions/a/fork", {"id": "d"}), 429, 507)
        s.DELTA.learn(self.c, "a", s.DELTA.tokens(3))
        self.c.ok("DELETE", "/v1/sessions/b")
        s.DELTA.create(self.c, "d")

    def test_of_learns_with_the_same_etag_exactly_one_wins(self):
        self.start()
        s.DELTA.create(self.c, "m")
        tag = self.c.call("GET", "/v1/sessions/m").headers["ETag"]
        replies, x = [], s.DELTA.body(s.DELTA.tokens(1))

        def one():
            replies.append(self.d.client().call("POST", "/v1/sessions/m/learn", x[0], type=x[1],
                                                headers={"If-Match": tag}).status)
        with fw.Workers() as w:
            for _ in range(8):
                w.run(one)
        self.assertEqual(sorted(replies), [200] + [412] * 7)
        self.assertEqual(self.c.facts("m")["version"], 1)


if __name__ == "__main__":
    fw.main()
