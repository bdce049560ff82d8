#!/usr/bin/python3
"""kill -9 under load: what was answered is there, and what is sent again with its key is
learned once. The rounds are few by default; FW_ROUNDS or FW_FULL make them many."""
import http.client
import os
import sys
import threading
import time

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

LOSSY = os.environ.get("FW_VFS_LOSSY") or os.path.join(fw.BUILD, "tests/vfs_lossy.so")
GONE = (OSError, http.client.HTTPException)


def rounds(short, full):
    return fw.ROUNDS or (full if fw.FULL else short)


class Source:
    """One session's client: piece after piece, each with its key, one request in flight."""

    def __init__(self, id, model, mode, answered):
        self.id, self.model, self.mode, self.answered = id, model, mode, answered
        self.number = int("".join(filter(str.isdigit, id)))
        self.done = 0     # pieces answered, which is the version
        self.durable = 0  # what the daemon said is on the disk

    def piece(self, i):
        r = s.Lcg(self.number * 7919 + i)
        n = 1 + r.below(90 if self.model.kind == "stream" else 9)
        n *= 40 if r.below(20) == 0 else 1
        return self.model.tokens(n, self.number * 100003 + i)

    def run(self, port):
        """Until the daemon is gone."""
        c = fw.Client(port)
        try:
            while self.step(c):
                pass
        except GONE:
            pass

    def step(self, c):
        body, type = self.model.body(self.piece(self.done))
        r = c.call("POST", f"/v1/sessions/{self.id}/learn", body, type=type,
                   durability=self.mode, headers={"Idempotency-Key": f"{self.id}/{self.done}"})
        if r.status in (429, 503):  # full or ending: the same again, or it goes away
            return True
        if r.status != 200 or r.json["version"] != self.done + 1:
            raise AssertionError(f"{self.id}, {self.done} answered: {r!r}")
        self.done += 1
        if not r.headers.get("Idempotent-Replayed"):
            self.durable = max(self.durable, r.json["durable_version"])
            if self.mode == "commit" and self.durable < self.done:
                raise AssertionError(f"{self.id}: a commit that is not durable: {r!r}")
        self.answered.release()
        if self.done % 23 == 0:
            self.durable = c.post(self.id, "checkpoint")["durable_version"]
        elif self.done % 7 == 0:
            self.model.read(c, self.id)
        return True


class Lost(Exception):
    pass


class NothingLost(fw.Case):
    def check_after(self, sources, client):
        """What a restarted daemon has of each session against what it had answered."""
        for x in sources:
            r = client.call("GET", f"/v1/sessions/{x.id}", hash=True)
            if r.status != 200:
                raise Lost(f"{x.id}: {r!r}")
            version, told = r.json["version"], x.done if x.mode == "commit" else x.durable
            if version < told:
                raise Lost(f"{x.id}: version {version}, but {told} was durable")
            self.assertLessEqual(version, x.done + 1, x.id)
            if x.mode == "async":
                x.done = version  # the client goes on from what the disk has
                x.durable = min(x.durable, version)

    def loop(self, count, modes, env=None, each=300):
        """count times: load, kill -9, restart, look. Returns the sources and the daemon."""
        d = self.daemon("--max-resident-bytes", str(6 * s.MIB), "--journal-bytes",
                        str(self.random.choice([8192, 32768, 262144])), env=env)
        answered, c = threading.Semaphore(0), d.client()
        models = (s.AUTO, s.LOG, s.EVENTS, s.DELTA, s.GATED)
        sources = [Source(f"s{i}", models[i % 5], modes[i % len(modes)], answered)
                   for i in range(10)]
        for x in sources:
            x.model.create(c, x.id)
        for turn in range(count):
            with fw.Workers() as w:
                for x in sources:
                    w.run(x.run, d.port)
                for _ in range(self.random.randint(1, each)):
                    if not answered.acquire(timeout=fw.TIMEOUT):
                        break  # join() tells why
                s.DELTA.create(c, f"new{turn}")
                if turn:
                    c.ok("DELETE", f"/v1/sessions/new{turn - 1}")
                time.sleep(self.random.random() * 0.02)  # any moment will do
                d.kill()
            try:
                d.start()
            except AssertionError as e:
                raise Lost(f"it does not start again: {e}") from e
            c = d.client()
            self.check_after(sources, c)
            if c.call("GET", f"/v1/sessions/new{turn}").status != 200:
                raise Lost(f"new{turn} was created and is gone")
            if turn and c.call("GET", f"/v1/sessions/new{turn - 1}").status != 404:
                raise Lost(f"new{turn - 1} was deleted and is back")
        return d, sources

    def equals_serial(self, d, sources):
        """Sends what was unanswered again, then compares with learning it all in one go."""
        c = d.client()
        for x in sources:
            x.step(c)
            facts = c.facts(x.id, hash=True)
            self.assertEqual(facts["version"], x.done)
            whole = [t for i in range(x.done) for t in x.piece(i)]
            x.model.create(c, f"serial.{x.id}")
            want = x.model.learn(c, f"serial.{x.id}", whole, hash=True)
            self.assertEqual(facts["hash"], want["hash"], x.id)
            self.assertEqual(facts["tokens_seen"], want["tokens_seen"], x.id)

    def shim(self, **env):
        if not os.path.exists(LOSSY):
            self.skipTest(f"no {LOSSY}")
        if fw.sanitized():
            self.skipTest("a sanitizer build takes no preloaded library")
        return {"LD_PRELOAD": LOSSY, **env}

    def test_commits_survive_kill_9_and_resent_keys_are_learned_once(self):
        self.equals_serial(*self.loop(rounds(6, 20), ["commit"]))

    def test_async_learns_may_be_lost_but_durable_version_tells_the_truth(self):
        self.equals_serial(*self.loop(rounds(4, 20), ["async", "commit"]))

    def test_commits_survive_the_loss_of_every_write_that_was_not_synced(self):
        self.equals_serial(*self.loop(rounds(6, 50), ["commit"], self.shim()))

    def test_durable_version_is_true_when_unsynced_writes_are_lost(self):
        self.equals_serial(*self.loop(rounds(4, 20), ["async", "commit"], self.shim()))

    def test_a_disk_that_ignores_sync_is_caught_by_this_test(self):
        env = self.shim(FW_VFS_IGNORE_SYNC="1")
        with self.assertRaises(Lost):
            self.loop(20, ["commit"], env)

    def test_a_kill_during_restore_leaves_the_state_before_or_after_it(self):
        d = self.daemon()
        c = d.client()
        s.AUTO.create(c, "a")
        hashes = {}
        for i, name in enumerate(("even", "odd")):  # two learns: the versions start at 2
            s.AUTO.learn(c, "a", s.text(900, i))
            hashes[i] = c.post("a", "snapshots", {"name": name})["hash"]

        def swing(version, answered):
            mine = d.client()
            try:
                while True:
                    version += 1
                    name = "odd" if version % 2 else "even"
                    r = mine.post("a", f"snapshots/{name}/restore")
                    if (r["version"], r["hash"]) != (version, hashes[version % 2]):
                        raise AssertionError(f"{version}: {r}")
                    told[0] = version
                    answered.release()
            except GONE:
                pass
        c.post("a", "snapshots/even/restore")
        c.post("a", "snapshots/even/restore")
        told = [4]
        for _ in range(rounds(6, 20)):
            answered = threading.Semaphore(0)
            with fw.Workers() as w:
                w.run(swing, told[0], answered)
                for _ in range(self.random.randint(1, 8)):
                    if not answered.acquire(timeout=60):
                        break
                time.sleep(self.random.random() * 0.01)
                d.kill()
            d.start()
            facts = d.client().facts("a", hash=True)
            self.assertIn(facts["version"], (told[0], told[0] + 1))
            self.assertEqual(facts["hash"], hashes[facts["version"] % 2])
            told[0] = facts["version"]


if __name__ == "__main__":
    fw.main()
