"""Harness of the end-to-end tests: a daemon of one's own, a client, streams to learn.

A test starts its own daemon in its own directory on a free port (port 0, read back from the
daemon's stdout) and ends only that process, by its id. Only the standard library is used.

Environment:
  FASTWEIGHTD   the daemon; else $top_builddir/src/fastweightd
  FASTWEIGHTD2  a second build, for the tests that compare the bytes of two builds
  FW_FULL=1     the long variants; FW_ROUNDS=N sets the rounds of the kill -9 loops
  FW_TEST_SEED  seed of what is random in the tests (printed by every run)
"""
import atexit
import contextlib
import http.client
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
BUILD = os.path.abspath(os.environ.get("top_builddir") or os.path.join(TESTS, ".."))
BINARY = os.path.abspath(os.environ.get("FASTWEIGHTD") or os.path.join(BUILD, "src/fastweightd"))
FULL = os.environ.get("FW_FULL", "0") not in ("", "0")
ROUNDS = int(os.environ.get("FW_ROUNDS", "0"))
SEED = int(os.environ.get("FW_TEST_SEED") or random.SystemRandom().randrange(10**9))
TIMEOUT = 300  # of one request: sanitizer builds are slow, a hang is still found
REPORTS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer",
           "runtime error:", "Assertion `", "SUMMARY: ")



def sanitized():
    """Whether the daemon is a sanitizer build: slower, and no library can be preloaded."""
    with open(BINARY, "rb") as f:
        text = f.read()
    return any(x in text for x in (b"__asan_init", b"__tsan_init"))


_living = set()
atexit.register(lambda: [d.kill() for d in list(_living)])
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Daemon:
    """One daemon and its directory. start() after stop() or kill() is a restart on the same."""

    def __init__(self, *flags, data_dir=None, binary=BINARY, env=None):
        self.top = tempfile.mkdtemp(prefix="fw-e2e-")
        self.dir = data_dir or os.path.join(self.top, "data")
        os.makedirs(self.dir, exist_ok=True)
        self.flags, self.binary = list(flags), binary
        self.env = dict(os.environ, OPENBLAS_NUM_THREADS="1", **(env or {}))
        self.proc, self.port = None, None
        self.errors = os.path.join(self.top, "stderr")

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            shutil.rmtree(self.top, ignore_errors=True)
            raise

    def __exit__(self, kind, *_):
        try:
            if self.proc:
                code = self.stop()
                if kind is None and code != 0:
                    raise AssertionError(f"the daemon ended with {code}\n{self.stderr()[-3000:]}")
        finally:
            self.kill()
            shutil.rmtree(self.top, ignore_errors=True)

    def spawn(self):
        """Starts the process without waiting for its address."""
        with open(self.errors, "ab") as err:
            argv = [self.binary, "--listen", "127.0.0.1:0", "--data-dir", self.dir, *self.flags]
            self.proc = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=err, env=self.env, cwd=self.top)
        _living.add(self)
        return self.proc

    def start(self, timeout=60):
        self.spawn()
        try:
            self.port = int(self._address(timeout))
        except BaseException:
            self.kill()
            raise
        return self

    def _address(self, timeout):
        """The port in the address that the daemon prints once it listens."""
        end, text = time.monotonic() + timeout, b""
        out = self.proc.stdout.fileno()
        while time.monotonic() < end:
            if not select.select([out], [], [], 0.2)[0]:
                continue
            got = os.read(out, 4096)
            text += got
            found = re.search(rb"127\.0\.0\.1:(\d+)", text)
            if found and (b"\n" in text[found.start():]):
                return found.group(1)
            if not got:
                break
        raise AssertionError(f"no address on stdout ({text!r}), exit {self.proc.poll()}\n"
                             f"{self.stderr()[-3000:]}")

    def stderr(self):
        with contextlib.suppress(OSError):
            with open(self.errors, errors="replace") as f:
                return f.read()
        return ""

    def terminate(self):
        self.proc.send_signal(signal.SIGTERM)

    def wait(self, timeout=TIMEOUT):
        """The exit code; a sanitizer's report in stderr is a failure of the test."""
        code = self.proc.wait(timeout)
        self._ended()
        text = self.stderr()
        for word in REPORTS:
            if word in text:
                raise AssertionError(f"report in stderr:\n{text[text.index(word):][:4000]}")
        return code

    def stop(self):
        """SIGTERM and wait: drains, checkpoints. Returns the exit code."""
        if self.proc is None:
            return 0
        self.terminate()
        return self.wait()

    def kill(self):
        """kill -9 of this process only."""
        if self.proc is not None:
            self.proc.kill()
            self.proc.wait()
            self._ended()

    def _ended(self):
        self.proc.stdout.close()
        self.proc = None
        _living.discard(self)

    def restart(self, hard=False):
        if hard:
            self.kill()
        else:
            code = self.stop()
            assert code == 0, f"exit {code}\n{self.stderr()[-3000:]}"
        return self.start()

    def client(self):
        return Client(self.port)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return f"<{self.status} {self.body[:600]!r}>"


class Client:
    """HTTP/1.1 with keep-alive. One thread at a time."""

    def __init__(self, port):
        self.port, self.conn, self.used = port, None, 0.0

    def close(self):
        if self.conn:
            self.conn.close()
        self.conn = None

    def call(self, method, path, body=None, *, type=None, headers=None, raw=False, **query):
        """A dict or list goes as JSON, bytes as they are. Never sends twice."""
        if body is not None and not isinstance(body, (bytes, bytearray)):
            body, type = json.dumps(body).encode(), type or "application/json"
        head = dict(headers or {})
        if type:
            head["Content-Type"] = type
        if query:
            path += "?" + urllib.parse.urlencode({k: _text(v) for k, v in query.items()})
        if self.conn and time.monotonic() - self.used > 3:
            self.close()  # the server may have closed an idle connection
        if self.conn is None:
            self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        try:
            self.conn.request(method, path, body=body, headers=head)
            got = self.conn.getresponse()
            reply = Reply(got.status, got.headers, got.read())
        except BaseException:
            self.close()
            raise
        self.used = time.monotonic()
        if got.will_close:
            self.close()
        return reply

    def ok(self, method, path, body=None, **kw):
        """The JSON of a reply that must be a success."""
        r = self.call(method, path, body, **kw)
        if not 200 <= r.status < 300:
            raise AssertionError(f"{method} {path}: {r!r}")
        return r.json if r.body else None

    def create(self, id, model, config=None, **more):
        return self.ok("POST", "/v1/sessions", {"id": id, "model": model,
                                                "config": config or {}, **more})

    def post(self, id, verb, body=None, **kw):
        return self.ok("POST", f"/v1/sessions/{id}/{verb}", body, **kw)

    def get(self, id, verb, **kw):
        return self.ok("GET", f"/v1/sessions/{id}/{verb}", **kw)

    def facts(self, id, **query):
        return self.ok("GET", f"/v1/sessions/{id}", **query)

    def hash(self, id):
        return self.facts(id, hash=True)["hash"]

    def export(self, id):
        r = self.call("GET", f"/v1/sessions/{id}/export")
        assert r.status == 200, r
        return r.body


def _text(v):
    return {True: "true", False: "false"}.get(v, v) if isinstance(v, bool) else v


def raw_http(port, data, timeout=30):
    """Sends bytes as they are and reads until the server closes or is silent for 2 s."""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        with contextlib.suppress(ConnectionError):
            s.sendall(data)
        got = b""
        s.settimeout(2)
        with contextlib.suppress(OSError):
            while chunk := s.recv(65536):
                got += chunk
        return got


class Workers:
    """Threads whose first exception fails the test: with Workers() as w: w.run(f, x)."""

    def __init__(self):
        self.threads, self.failures = [], []

    def run(self, f, *args):
        def body():
            try:
                f(*args)
            except BaseException as e:  # told by join
                self.failures.append(e)
        t = threading.Thread(target=body, daemon=True)
        t.start()
        self.threads.append(t)
        return t

    def join(self, timeout=2 * TIMEOUT):
        for t in self.threads:
            t.join(timeout)
            assert not t.is_alive(), "a client thread hangs"
        if self.failures:
            raise self.failures[0]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.join()


class Case(unittest.TestCase):
    longMessage = True

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        self.stack = contextlib.ExitStack()
        # A daemon that fails to end well fails the test; nothing is left running either way.
        self.addCleanup(self.stack.close)

    def daemon(self, *flags, **kw):
        return self.stack.enter_context(Daemon(*flags, **kw))

    def refused(self, reply, *codes):
        """An error reply of this status, with the documented object."""
        self.assertIn(reply.status, codes, reply)
        e = reply.error
        self.assertEqual(e["code"], reply.status)
        for key in ("type", "reason", "message"):
            self.assertIsInstance(e[key], str, reply)
            self.assertTrue(e[key], reply)
        self.assertIn("param", e)
        return e


class _Tap(unittest.TestResult):
    """Prints a line for each test as it ends, in the Test Anything Protocol."""

    def __init__(self, out):
        super().__init__()
        self.out, self.count, self.bad = out, 0, 0

    def startTest(self, test):
        super().startTest(test)
        self.began, self.state, self.notes = time.monotonic(), "ok", []

    def stopTest(self, test):
        self.count += 1
        self.bad += self.state == "not ok"
        name = test._testMethodName.removeprefix("test_").replace("_", " ")
        skip = next((n for n in self.notes if n.startswith(" # SKIP")), "")
        print(f"{self.state} {self.count} - {name}{skip}", file=self.out)
        print(f"# {time.monotonic() - self.began:.1f} s", file=self.out)
        for note in self.notes:
            if note != skip:
                print("\n".join("# " + x for x in note.splitlines()), file=self.out)
        self.out.flush()

    def _fail(self, test, err):
        self.state = "not ok"
        self.notes.append(f"{test} {getattr(test, 'now', '')}\n" + self._exc_info_to_string(err, test))

    def addError(self, test, err):
        if not hasattr(self, "notes"):
            self.startTest(test)
        self._fail(test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._fail(subtest, err)

    def addSkip(self, test, reason):
        self.notes.append(f" # SKIP {reason}")


def main():
    """Runs the tests of the calling file (all, or those whose name contains an argument)."""
    if not os.path.exists(BINARY):
        print(f"1..1\nnot ok 1 - there is a daemon at {BINARY}")
        sys.exit(1)
    module = sys.modules["__main__"]
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    flat = [t for suite in tests for t in suite]
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    flat = [t for t in flat if not words or any(w in t.id() for w in words)]
    print(f"1..{len(flat)}\n# seed {SEED}, daemon {BINARY}", flush=True)
    result = _Tap(sys.stdout)
    for t in flat:
        t.run(result)
    sys.exit(1 if result.bad else 0)
