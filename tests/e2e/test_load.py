#!/usr/bin/python3
"""64 clients at once, everything mixed, and SIGTERM in the middle: each accepted request is
answered, what was answered is kept, the daemon ends with 0 and no sanitizer has a word."""
import http.client
import os
import random
import sys
import threading

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

CLIENTS = 64
SECONDS = float(os.environ.get("FW_LOAD_SECONDS") or (60 if fw.FULL else 10))
FINE = {200, 201, 204}
BUSY = {429, 503}


class Visitor:
    """A client with a session of its own, whose learns it counts, and visits to shared ones."""

    def __init__(self, number, port):
        self.number, self.port = number, port
        self.random = random.Random(fw.SEED * 1000 + number)
        self.model = s.MODELS[number % len(s.MODELS)]
        self.id = f"own{number}"
        self.learned = self.requests = 0

    def run(self, ending):
        """Until the daemon, told to end, takes no more requests."""
        c = fw.Client(self.port)
        while True:
            try:
                self.visit(c)
            except (OSError, http.client.HTTPException):
                if not ending.is_set():
                    raise
                return

    def visit(self, c):
        what, r = self.random.randrange(20), self.random
        own = f"/v1/sessions/{self.id}"
        x = self.model.tokens(r.randint(1, 300 if self.model.kind == "stream" else 20), what)
        body, type = self.model.body(x)
        ok = FINE | BUSY
        if what < 8:
            q = {"durability": r.choice(["async", "commit"]), "hash": r.random() < 0.1}
            got = c.call("POST", own + "/learn", body, type=type, **q)
            self.learned += got.status == 200
        elif what < 10:
            got = c.call("POST", own + "/score", body, type=type, adapt=r.random() < 0.5)
        elif what < 12:
            shared = f"/v1/sessions/shared{self.random.randrange(len(s.MODELS))}"
            body, type = s.MODELS[int(shared[-1])].body(s.MODELS[int(shared[-1])].tokens(20, what))
            got = c.call("POST", shared + "/learn", body, type=type)
        elif what == 12 and self.model.kind == "stream":
            got = c.call("POST", own + "/predict", {"full": self.model.model == "bytes"})
        elif what == 13 and self.model.kind == "stream":
            got = c.call("POST", own + "/generate", {"max_tokens": 20, "seed": self.requests})
        elif what == 14:
            got = c.call("GET", own + "/" + r.choice(["inspect", "tensors", "export"]))
        elif what == 15:
            got = c.call("POST", own + "/fork", {"id": f"fork{self.number}"})
            if got.status in FINE:
                got = c.call("DELETE", f"/v1/sessions/fork{self.number}")
            ok = ok | {404, 409}
        elif what == 16:
            got = c.call("POST", own + "/checkpoint")
        elif what == 17:
            got = c.call("POST", own + "/snapshots", {"name": f"n{r.randrange(2)}"})
            ok = ok | {409}
        elif what == 18:
            got = c.call("DELETE", own + f"/snapshots/n{r.randrange(2)}")
            ok = ok | {404}
        else:
            got = c.call("GET", r.choice(["/healthz", "/metrics", "/v1/sessions?limit=5", own]))
        self.requests += 1
        if got.status not in ok:
            raise AssertionError(f"{self.id} {what}: {got!r}")


class Load(fw.Case):
    def crowd(self, seconds, *flags):
        """Runs the clients for some seconds, ends the daemon under them, restarts it."""
        d = self.daemon(*flags)
        c = d.client()
        visitors = [Visitor(i, d.port) for i in range(CLIENTS)]
        for v in visitors:
            v.model.create(c, v.id)
        for i, m in enumerate(s.MODELS):
            m.create(c, f"shared{i}")
        ending, failed = threading.Event(), threading.Event()

        def guarded(v):
            try:
                v.run(ending)
            except BaseException:
                failed.set()
                raise
        with fw.Workers() as w:
            for v in visitors:
                w.run(guarded, v)
            failed.wait(seconds)
            ending.set()
            d.terminate()  # the clients go on while it drains
            code = d.wait()
        self.assertEqual(code, 0, d.stderr()[-2000:])
        print(f"# {sum(v.requests for v in visitors)} requests in {seconds:.1f} s", flush=True)
        d.start()
        c = d.client()
        for v in visitors:  # every answered learn is there; none that was not answered
            self.assertEqual(c.facts(v.id)["version"], v.learned, v.id)
        self.assertEqual(d.stop(), 0)

    def test_sixty_four_clients_are_all_answered_also_while_it_drains(self):
        self.crowd(SECONDS)

    def test_the_same_holds_when_sessions_are_evicted_all_the_time(self):
        self.crowd(SECONDS / 2, "--max-resident-bytes", str(20 * s.MIB))

    def test_sigterm_again_and_again_loses_no_answered_request(self):
        for _ in range(10 if fw.FULL else 3):
            self.crowd(self.random.uniform(0.2, 1.0))


if __name__ == "__main__":
    fw.main()
