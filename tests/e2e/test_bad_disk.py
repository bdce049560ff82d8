#!/usr/bin/python3
"""The disk is full, damaged, not ours or not writable: no lie, no loss, no harm to the rest."""
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402


class BadDisk(fw.Case):
    def tmpfs(self, size, *options):
        """A small file system of our own, gone with the test."""
        if os.geteuid() != 0:
            self.skipTest("mounting a tmpfs needs root")
        at = tempfile.mkdtemp(prefix="fw-tmpfs-")
        self.stack.callback(os.rmdir, at)
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)),
                                "fw-e2e", at], capture_output=True, text=True)
        if mount.returncode:
            self.skipTest(f"no tmpfs here: {mount.stderr.strip()}")
        self.stack.callback(subprocess.run, ["umount", "-l", at], check=True)
        return at

    def fill(self, at):
        """Takes all space that is left; returns the file to remove."""
        filler = os.path.join(at, "filler")
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            for size in (65536, 4096):
                with contextlib.suppress(OSError):
                    while os.write(fd, bytes(size)):
                        pass
        finally:
            os.close(fd)
        return filler

    def fails_to_start(self, d, *words):
        code = d.spawn().wait(60)
        d._ended()
        self.assertNotEqual(code, 0)
        self.assertGreater(code, 0, f"died of a signal: {d.stderr()}")
        for w in words:
            self.assertIn(w.replace("-", "_"), d.stderr().replace("-", "_"))

    def other(self, dir):
        d = fw.Daemon(data_dir=dir)
        self.stack.callback(shutil.rmtree, d.top, True)
        self.stack.callback(d.kill)
        return d

    def test_a_full_disk_is_507_reads_go_on_and_space_heals_it(self):
        at = self.tmpfs("64m")
        d = self.daemon(data_dir=os.path.join(at, "data"))
        c = d.client()
        s.AUTO.create(c, "a")
        s.AUTO.create(c, "b")
        s.AUTO.create(c, "serial")
        learned, i = b"", 0
        for id in "ab":
            s.AUTO.learn(c, id, s.text(2000))
        learned += s.text(2000)
        filler = self.fill(at)
        # The write-ahead log grows into space it already has; then there is none.
        full = None
        for i in range(3000):
            x = s.text(20000, i)
            r = c.call("POST", "/v1/sessions/a/learn", x, type="text/plain",
                       headers={"Idempotency-Key": f"k{i}"})
            if r.status == 507:
                full = r
                break
            self.assertEqual(r.status, 200, r)
            learned += x
        self.assertIsNotNone(full, "the disk never got full")
        self.assertEqual(self.refused(full, 507)["type"], "storage_error")
        before = c.facts("a", hash=True)
        self.assertEqual(before["tokens_seen"], len(learned))
        for id in "ab":  # reads go on, here and elsewhere
            c.post(id, "predict", {"full": True})
            c.post(id, "score", {"text": "hello"}, adapt=True)
            c.get(id, "inspect")
            c.export(id)
        c.ok("GET", "/healthz")
        ready = c.call("GET", "/readyz")
        self.assertEqual((ready.status, ready.json["ready"]), (503, False), ready)
        self.assertTrue(ready.json["reasons"])
        self.refused(c.call("POST", "/v1/sessions/a/snapshots", {"name": "x"}), 507)
        self.assertEqual(c.hash("a"), before["hash"])
        os.unlink(filler)
        end = time.monotonic() + 60
        while True:
            r = c.call("POST", "/v1/sessions/a/learn", x, type="text/plain",
                       headers={"Idempotency-Key": f"k{i}"})
            if r.status == 200 or time.monotonic() > end:
                break
            self.refused(r, 507, 503)
            time.sleep(0.05)
        self.assertEqual(r.status, 200, r)
        learned += x
        self.assertNotIn("Idempotent-Replayed", r.headers)
        self.assertEqual(c.ok("GET", "/readyz")["ready"], True)
        want = c.hash("a")
        d.restart(hard=True)
        c = d.client()
        self.assertEqual(c.hash("a"), want)
        self.assertEqual(s.AUTO.learn(c, "serial", learned, hash=True)["hash"], want)
        self.assertEqual(s.AUTO.learn(c, "b", b"x")["tokens_seen"], 2001)

    def test_async_learns_on_a_full_disk_are_refused_until_a_checkpoint_succeeds(self):
        at = self.tmpfs("48m")
        d = self.daemon(data_dir=os.path.join(at, "data"))
        c = d.client()
        s.AUTO.create(c, "a")
        filler = self.fill(at)
        status, n = 200, 0
        while status == 200 and n < 5000:
            r = c.call("POST", "/v1/sessions/a/learn", s.text(20000, n), type="text/plain",
                       durability="async")
            status, n = r.status, n + 1
        self.assertEqual(status, 507, r)
        state = c.hash("a")
        os.unlink(filler)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            r = c.call("POST", "/v1/sessions/a/checkpoint")
            if r.status == 200:
                break
            time.sleep(0.05)
        self.assertEqual(r.status, 200, r)
        self.assertEqual(c.hash("a"), state)
        s.AUTO.learn(c, "a", b"more", durability="async")
        state = c.hash("a")
        d.restart()
        self.assertEqual(d.client().hash("a"), state)

    def damaged(self, statement, *args):
        """A daemon with sessions good, bad and fine; then `statement` is done to the database
        of the stopped daemon, with the uid of `bad`."""
        d = self.daemon()
        c = d.client()
        hashes = {}
        for id in ("good", "bad", "fine"):
            s.AUTO.create(c, id)
            s.AUTO.learn(c, id, s.text(5000, len(id)))
            c.post(id, "checkpoint")
            s.AUTO.learn(c, id, s.text(300, 9))
            hashes[id] = c.hash(id)
        d.kill()
        with sqlite3.connect(os.path.join(d.dir, "fastweightd.db")) as db:
            uid, = db.execute("SELECT uid FROM sessions WHERE id = 'bad'").fetchone()
            changed = db.execute(statement.format(uid=uid, chunk=2 * uid * 1024), args).rowcount
            self.assertEqual(changed, 1)
        db.close()
        d.start()
        c = d.client()
        for verb, body in (("predict", {}), ("learn", {"text": "x"}), ("score", {"text": "x"})):
            e = self.refused(c.call("POST", f"/v1/sessions/bad/{verb}", body), 500)
            self.assertEqual(e["reason"], "state_corrupt")
        self.refused(c.call("GET", "/v1/sessions/bad/export"), 500)
        for id in ("good", "fine"):
            self.assertEqual(c.hash(id), hashes[id])
            s.AUTO.learn(c, id, b"goes on")
        self.assertEqual([x["id"] for x in c.ok("GET", "/v1/sessions")["data"]],
                         ["bad", "fine", "good"])
        c.ok("DELETE", "/v1/sessions/bad")
        s.AUTO.create(c, "bad")
        s.AUTO.learn(c, "bad", b"a new life")
        self.assertEqual(d.stop(), 0)

    def test_a_damaged_block_fails_only_its_session(self):
        self.damaged("UPDATE blocks SET data = cast(substr(data, 1, 5000) || x'55aa55aa' ||"
                     " substr(data, 5005) AS BLOB) WHERE id = {chunk}")

    def test_a_missing_block_fails_only_its_session(self):
        self.damaged("DELETE FROM blocks WHERE id = {chunk}")

    def test_a_damaged_journal_row_fails_only_its_session(self):
        self.damaged("UPDATE journal SET body = cast(substr(body, 1, length(body) - 1) || 'z'"
                     " AS BLOB) WHERE uid = {uid}")

    def test_a_journal_with_a_gap_fails_only_its_session(self):
        self.damaged("UPDATE journal SET version = version + 1 WHERE uid = {uid}")

    def test_a_damaged_snapshot_is_refused_and_the_session_goes_on(self):
        d = self.daemon()
        c = d.client()
        s.AUTO.create(c, "a")
        s.AUTO.learn(c, "a", s.text(5000))
        c.post("a", "snapshots", {"name": "one"})
        s.AUTO.learn(c, "a", s.text(100))
        want = c.hash("a")
        self.assertEqual(d.stop(), 0)
        with sqlite3.connect(os.path.join(d.dir, "fastweightd.db")) as db:
            snap, = db.execute("SELECT snap FROM snapshots").fetchone()
            done = db.execute("UPDATE blocks SET data = zeroblob(length(data)) WHERE id = ?",
                              ((2 * snap + 1) * 1024,)).rowcount
            self.assertEqual(done, 1)
        db.close()
        d.start()
        c = d.client()
        self.refused(c.call("POST", "/v1/sessions/a/snapshots/one/restore"), 500)
        self.refused(c.call("GET", "/v1/sessions/a/snapshots/one"), 500)
        self.assertEqual(c.hash("a"), want)
        s.AUTO.learn(c, "a", b"x")
        c.ok("DELETE", "/v1/sessions/a/snapshots/one")

    def test_a_second_daemon_on_the_same_directory_ends_with_a_clear_error(self):
        d = self.daemon()
        self.fails_to_start(self.other(d.dir), "another daemon", d.dir)
        d.client().ok("GET", "/healthz")

    def test_nothing_is_acknowledged_once_the_database_was_taken_away(self):
        for name in ("fastweightd.db", "fastweightd.db-wal"):
            d = self.other(tempfile.mkdtemp(prefix="fw-e2e-"))
            self.stack.callback(shutil.rmtree, d.dir, True)
            c = d.start().client()
            s.AUTO.create(c, "a")
            before = s.AUTO.learn(c, "a", s.text(100))
            path = os.path.join(d.dir, name)
            os.rename(path, path + ".away")
            for id in ("a", "b"):
                r = c.call("POST", f"/v1/sessions/{id}/learn", s.text(50), type="text/plain")
                self.refused(r, 507 if id == "a" else 404)
                self.refused(c.call("POST", "/v1/sessions", {"id": "b", "model": "bytes"}), 507)
            self.assertEqual(c.call("GET", "/readyz").status, 503)
            self.assertEqual(c.facts("a")["version"], before["version"])
            os.rename(path + ".away", path)
            self.assertEqual(s.AUTO.learn(c, "a", s.text(50))["version"], before["version"] + 1)
            self.assertEqual(c.call("GET", "/readyz").status, 200)
            d.restart(hard=True)
            self.assertEqual(d.client().facts("a")["tokens_seen"], 150)
            self.assertEqual(d.stop(), 0)

    def test_a_directory_that_cannot_be_written_ends_with_a_clear_error(self):
        with tempfile.NamedTemporaryFile() as f:
            d = self.other(None)
            d.dir = f.name
            self.fails_to_start(d, f.name)
        at = self.tmpfs("1m", "ro")
        d = self.other(None)
        d.dir = os.path.join(at, "data")
        self.fails_to_start(d, at)

    def test_a_foreign_database_is_not_touched(self):
        d = self.other(None)
        path = os.path.join(d.dir, "fastweightd.db")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE mine (x)")
        db.close()
        with open(path, "rb") as f:
            before = f.read()
        self.fails_to_start(d, "fastweightd.db")
        with open(path, "rb") as f:
            self.assertEqual(f.read(), before)

    def test_sigterm_with_fifty_dirty_sessions_keeps_them_all(self):
        d = self.daemon()
        c = d.client()
        want = {}
        for i in range(50):
            m = s.MODELS[i % len(s.MODELS)]
            m.create(c, f"s{i}")
            r = m.learn(c, f"s{i}", m.tokens(30, i), durability="async", hash=True)
            want[f"s{i}"] = r["hash"]
        self.assertEqual(d.stop(), 0)
        d.start()
        c = d.client()
        got = {f["id"]: f for f in c.ok("GET", "/v1/sessions")["data"]}
        self.assertTrue(all(f["version"] == f["durable_version"] == 1 for f in got.values()))
        self.assertEqual({id: c.hash(id) for id in want}, want)

    def test_wrong_flags_and_settings_end_with_a_clear_error(self):
        for flags in (["--no-such-flag"], ["--listen", "nonsense"], ["--max-queue", "x"],
                      ["--max-queue", "-1"], ["--config", "/nonexistent"], ["--listen"],
                      ["--listen", "0.0.0.0:0"], ["--listen", "127.0.0.1:99999"], ["stray"]):
            d = self.other(None)
            d.flags = flags
            self.fails_to_start(d, flags[0].lstrip("-"))
        d = self.other(None)
        conf = os.path.join(d.top, "conf")
        with open(conf, "w") as f:
            f.write("max_queue = 7\nmax_quue = 8\n")
        d.flags = ["--config", conf]
        self.fails_to_start(d, "max_quue")


if __name__ == "__main__":
    fw.main()
