#!/usr/bin/python3
"""generate: every sampling option and what it refuses; tokens as server-sent events."""
import contextlib
import json
import math
import os
import re
import shutil
import socket
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import checkpoints  # noqa: E402
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


class Stream:
    """One request whose reply is read event by event from a raw socket."""

    def __init__(self, port, path, body, window=None):
        data = json.dumps(body).encode()
        self.sock = socket.socket()
        if window:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.sock.settimeout(120)
        self.sock.connect(("127.0.0.1", port))
        self.sock.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          f"application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        self.headers = {}
        while line := self.file.readline().strip():
            key, _, value = line.decode().partition(": ")
            self.headers[key.lower()] = value
        self.text, self.ended = b"", False

    def chunk(self):
        """Reads one chunk; false at the last."""
        size = int(self.file.readline(), 16)
        got = self.file.read(size)
        assert len(got) == size and self.file.readline() == b"\r\n"
        self.text += got
        self.ended = size == 0
        return not self.ended

    def event(self):
        """The next event's or comment's lines, or None at the end."""
        while b"\n\n" not in self.text:
            if self.ended or not self.chunk():
                assert not self.text, self.text
                return None
        got, _, self.text = self.text.partition(b"\n\n")
        return got.decode()

    def all(self):
        """(objects, comments) up to [DONE]; nothing may follow it."""
        objects, comments = [], 0
        while (e := self.event()) != "data: [DONE]":
            if e.startswith(": "):
                comments += 1
                continue
            assert e.startswith("data: ") and "\n" not in e, e
            objects.append(json.loads(e[6:]))
        assert self.event() is None
        return objects, comments

    def close(self, reset=False):
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.file.close()
        self.sock.close()


class Events(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", s.text(3000), type="text/plain")

    def stream(self, id="a", **body):
        window = body.pop("window", None)
        got = Stream(self.d.port, f"/v1/sessions/{id}/generate", {"stream": True, **body}, window)
        self.stack.callback(got.close)
        return got

    def metric(self, name):
        text = self.c.call("GET", "/metrics").body.decode()
        return int(re.search(rf"(?m)^fastweightd_{name} (\d+)$", text)[1])

    def until(self, what, seconds=60):
        end = time.monotonic() + seconds
        while not what():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_the_events_together_are_the_whole_reply(self):
        for o in ({"max_tokens": 500, "temperature": 1.5}, {"max_tokens": 1, "temperature": 0},
                  {"max_tokens": 300, "stop": ["the", " a "], "prefix": "and "},
                  {"max_tokens": 40, "learn": True, "stop": "q"},
                  {"max_tokens": 9, "stop_tokens": list(range(97, 113))}):
            twin = self.c.ok("POST", "/v1/sessions/a/fork", {"id": "twin"})["id"]
            whole = self.c.post(twin, "generate", {"seed": 9, **o})
            got = self.stream(seed=9, **o)
            self.assertEqual((got.status, got.headers["content-type"]), (200, "text/event-stream"))
            objects, _ = got.all()
            last = objects.pop()
            for key in ("version", "durable_version"):
                whole.pop(key, None), last.pop(key, None)
            self.assertEqual(last, whole)
            self.assertEqual([t for e in objects for t in e["tokens"]], whole["tokens"])
            self.assertEqual("".join(e["text"] for e in objects), whole["text"])
            self.assertEqual(self.c.hash("a"), self.c.hash(twin))
            self.c.ok("DELETE", "/v1/sessions/twin")

    def test_text_never_ends_inside_a_character(self):
        s.AUTO.create(self.c, "u")
        self.c.post("u", "learn", ("\u4e16\u00e9\U0001f600 " * 60).encode(), type="text/plain")
        seen = ""
        for n in range(1, 12):
            objects, _ = self.stream("u", max_tokens=n, temperature=0).all()
            seen = "".join(e["text"] for e in objects[:-1])
            self.assertEqual(seen, bytes(objects[-1]["tokens"]).decode(errors="replace"))
        self.assertIn("\u4e16\u00e9\U0001f600", seen)
        objects, _ = self.stream("u", max_tokens=4000, temperature=0).all()
        self.assertNotIn("\ufffd", "".join(e["text"] for e in objects[:-2]))

    def test_ids_without_text_are_told_too(self):
        s.EVENTS.create(self.c, "e")
        s.EVENTS.learn(self.c, "e", s.EVENTS.tokens(2000))
        objects, _ = self.stream("e", max_tokens=50).all()
        self.assertNotIn("text", objects[0])
        self.assertEqual([t for e in objects[:-1] for t in e["tokens"]], objects[-1]["tokens"])

    def test_what_is_refused_at_once_has_its_status(self):
        for id, body, status in (("none", {"max_tokens": 1}, 404), ("a", {}, 422),
                                 ("a", {"max_tokens": 1, "top_p": 2}, 422),
                                 ("a", {"max_tokens": 1, "logit_bias": {"300": 1}}, 422)):
            self.refused(self.c.call("POST", f"/v1/sessions/{id}/generate",
                                     {"stream": True, **body}), status)
        self.refused(self.c.call("POST", "/v1/sessions/a/generate",
                                 {"max_tokens": 1, "stream": 1}), 422)

    def test_a_failure_on_the_way_is_an_event(self):
        with fw.Workers() as w:
            w.run(lambda: fw.Client(self.d.port).post("a", "learn", s.text(40000 if fw.sanitized() else 400000),
                                                      type="text/plain"))
            self.until(lambda: self.metric("queued_requests") > 0)
            got = self.stream(max_tokens=5)
            self.c.ok("DELETE", "/v1/sessions/a")
            e = got.event()
            while e.startswith(": "):
                e = got.event()
            self.assertTrue(e.startswith("event: error\ndata: {"), e)
            self.assertEqual(json.loads(e.split("data: ")[1])["error"]["code"], 404)
            self.assertIsNone(got.event())

    def test_a_connection_serves_a_stream_and_then_more(self):
        got = self.stream(max_tokens=10)
        got.all()
        got.sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertEqual(got.file.readline(), b"HTTP/1.1 200 OK\r\n")

    def test_a_client_that_leaves_ends_the_work(self):
        for reset in (False, True):
            before, gone = self.metric("tokens_generated_total"), self.metric("cancelled_requests_total")
            got = self.stream(max_tokens=65536)
            got.event()
            got.close(reset)
            self.until(lambda: self.metric("cancelled_requests_total") == gone + 1)
            self.assertEqual(self.metric("tokens_generated_total"), before)
        version = self.c.facts("a")["version"]
        got = self.stream(max_tokens=65536, learn=True)
        got.event()
        got.close()
        self.until(lambda: self.metric("cancelled_requests_total") == 3)
        self.assertEqual(self.c.facts("a")["version"], version)
        self.until(lambda: self.metric("http_requests_in_flight") == 1)

    def test_a_slow_reader_holds_up_nobody(self):
        n = 500 if fw.sanitized() else 20000
        got = self.stream(max_tokens=n, window=4096)
        self.until(lambda: self.metric("tokens_generated_total") == n, 120)
        self.c.post("a", "learn", b"more", type="text/plain")
        objects, _ = got.all()
        self.assertEqual(len(objects[-1]["tokens"]), n)
        self.assertEqual([t for e in objects[:-1] for t in e["tokens"]], objects[-1]["tokens"])

    def test_64_streams_at_once_are_all_whole(self):
        whole = [self.c.post("a", "generate", {"max_tokens": 120, "seed": i})["tokens"]
                 for i in range(4)]

        def one(i):
            got = Stream(self.d.port, "/v1/sessions/a/generate",
                         {"stream": True, "max_tokens": 120, "seed": i % 4})
            with contextlib.closing(got):
                objects, _ = got.all()
                assert objects[-1]["tokens"] == whole[i % 4]
                assert [t for e in objects[:-1] for t in e["tokens"]] == whole[i % 4]

        with fw.Workers() as w:
            for i in range(64):
                w.run(one, i)

    def test_comments_come_while_a_stream_waits_for_its_turn(self):
        with fw.Workers() as w:
            w.run(lambda: fw.Client(self.d.port).post("a", "learn", s.text(100000 if fw.sanitized() else 1500000),
                                                      type="text/plain"))
            self.until(lambda: self.metric("queued_requests") > 0)
            began = time.monotonic()
            objects, comments = self.stream(max_tokens=3).all()
            if time.monotonic() - began > 9:  # the first comes after 5 to 7.5 s
                self.assertGreater(comments, 0)
        self.assertEqual(len(objects[-1]["tokens"]), 3)


class Ends(fw.Case):
    def test_a_stop_finishes_streams_or_ends_them_in_time(self):
        d = self.daemon("--drain-timeout-s", "2")
        c = d.client()
        s.AUTO.create(c, "a")
        c.post("a", "learn", s.text(3000), type="text/plain")
        version = c.facts("a")["version"]
        short = Stream(d.port, "/v1/sessions/a/generate", {"max_tokens": 200, "stream": True})
        # One after the other, so the last of them cannot come to its end before the stop does.
        slow = [Stream(d.port, "/v1/sessions/a/generate",
                       {"max_tokens": 65536, "top_k": 50, "stream": True}, 4096) for _ in range(8)]
        long = Stream(d.port, "/v1/sessions/a/generate", {"max_tokens": 65536, "stream": True,
                                                          "learn": True})
        short.event()
        began = time.monotonic()
        d.terminate()
        self.assertEqual(len(short.all()[0][-1]["tokens"]), 200)
        while (e := long.event()).startswith((": ", "data: ")):
            self.assertNotIn("[DONE]", e)
        self.assertIn("event: error", e)
        self.assertIsNone(long.event())
        self.assertEqual(d.wait(), 0)
        self.assertLess(time.monotonic() - began, 60)
        for x in (short, long, *slow):
            x.close()
        d.start()
        self.assertEqual(d.client().facts("a")["version"], version)

    def test_a_kill_in_the_middle_of_a_stream_that_learns_leaves_nothing_of_it(self):
        d = self.daemon()
        c = d.client()
        s.AUTO.create(c, "a")
        c.post("a", "learn", s.text(3000), type="text/plain")
        before = c.hash("a")
        got = Stream(d.port, "/v1/sessions/a/generate", {"max_tokens": 65536, "stream": True,
                                                         "learn": True})
        got.event()
        d.kill()
        with contextlib.suppress(OSError, AssertionError, ValueError):
            while got.event():
                pass
        got.close()
        d.start()
        self.assertEqual(d.client().hash("a"), before)


class OpenAI:
    """As OpenAI's own client speaks: it sends nulls, and reads chunks until [DONE]."""

    def __init__(self, port):
        self.port, self.client = port, fw.Client(port)

    def completions(self, **body):
        body = {"best_of": None, "echo": None, "logit_bias": None, "suffix": None, **body}
        if not body.get("stream"):
            return self.client.ok("POST", "/v1/completions", body)
        got = Stream(self.port, "/v1/completions", body)
        with contextlib.closing(got):
            assert (got.status, got.headers["content-type"]) == (200, "text/event-stream")
            return got.all()[0]


class Completions(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()
        self.ai = OpenAI(self.d.port)
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", LESSON, type="text/plain")

    def test_a_completion_goes_on_from_the_session_and_the_prompt(self):
        want = self.c.post("a", "generate", {"max_tokens": 16, "temperature": 0, "prefix": ". one"})
        got = self.ai.completions(session="a", prompt=". one", temperature=0)
        self.assertLess(abs(got["created"] - time.time()), 60)
        self.assertTrue(got["id"].startswith("cmpl-"))
        self.assertEqual(got["choices"], [{"text": want["text"], "index": 0, "logprobs": None,
                                           "finish_reason": "length"}])
        self.assertEqual(got["usage"], {"prompt_tokens": 5, "completion_tokens": 16,
                                        "total_tokens": 21})
        self.assertEqual((got["object"], got["model"], got["session"], got["version"]),
                         ("text_completion", "bytes", "a", 1))
        for prompt in (list(b". one"), [". one"], [list(b". one")]):
            again = self.ai.completions(model="bytes", session="a", prompt=prompt, temperature=0)
            self.assertEqual(again["choices"], got["choices"])
        stop = self.ai.completions(session="a", prompt=". one", temperature=0, stop=["wo"],
                                   logprobs=0, max_tokens=40)["choices"][0]
        self.assertEqual((stop["text"], stop["finish_reason"]), (" t", "stop"))
        self.assertEqual(stop["logprobs"]["tokens"], [" ", "t"])
        self.assertEqual(stop["logprobs"]["text_offset"], [0, 1])
        self.assertTrue(all(-1 < x <= 0 for x in stop["logprobs"]["token_logprobs"]))

    def test_chunks_together_are_the_completion(self):
        o = {"session": "a", "prompt": "on", "seed": 3, "temperature": 3, "max_tokens": 90}
        want = self.ai.completions(**o, logprobs=0)
        chunks = self.ai.completions(**o, logprobs=0, stream=True,
                                     stream_options={"include_usage": True})
        usage = chunks.pop()
        self.assertEqual((usage["choices"], usage["usage"]), ([], want["usage"]))
        for chunk in chunks:
            self.assertEqual((chunk["object"], chunk["id"], chunk["choices"][0]["index"]),
                             ("text_completion", usage["id"], 0))
        choices = [c["choices"][0] for c in chunks]
        self.assertEqual([c["finish_reason"] for c in choices[:-1]], [None] * (len(choices) - 1))
        self.assertEqual(choices[-1]["finish_reason"], "length")
        self.assertEqual("".join(c["text"] for c in choices), want["choices"][0]["text"])
        for key in ("tokens", "token_logprobs", "text_offset"):
            self.assertEqual([x for c in choices for x in c["logprobs"][key]],
                             want["choices"][0]["logprobs"][key])

    def test_without_a_session_the_model_s_first_state_answers_and_nothing_is_kept(self):
        self.c.create("fresh", "bytes")
        want = self.c.post("fresh", "generate", {"max_tokens": 40, "seed": 1,
                                                 "prefix": "abc abc abc"})["text"]
        for stream in (False, True):
            got = self.ai.completions(model="bytes", prompt="abc abc abc", seed=1, max_tokens=40,
                                      stream=stream)
            text = got["choices"][0]["text"] if not stream else "".join(
                c["choices"][0]["text"] for c in got)
            self.assertEqual(text, want)
        self.assertNotIn("session", self.ai.completions(model="bytes", prompt="x"))
        with fw.Workers() as w:
            for i in range(16):
                w.run(lambda: OpenAI(self.d.port).completions(model="bytes", prompt="x"))
        self.assertEqual(len(self.c.ok("GET", "/v1/sessions")["data"]), 2)
        end = time.monotonic() + 60  # the last goes just after its reply
        resident = r"(?m)^fastweightd_sessions_resident [012]$"
        while not re.search(resident, text := self.c.call("GET", "/metrics").body.decode()):
            self.assertLess(time.monotonic(), end)
        self.assertIn("\nfastweightd_sessions 2\n", text)

    def test_with_learn_prompt_and_completion_are_learned_as_one(self):
        self.c.ok("POST", "/v1/sessions/a/fork", {"id": "b"})
        got = self.ai.completions(session="a", prompt=" two. one", max_tokens=9, learn=True, seed=4)
        self.assertEqual((got["version"], got["tokens_seen"]), (2, len(LESSON) + 18))
        self.c.post("b", "learn", (" two. one" + got["choices"][0]["text"]).encode(),
                    type="text/plain")
        self.assertEqual(self.c.hash("a"), self.c.hash("b"))
        chunks = self.ai.completions(session="a", prompt="x", max_tokens=9, learn=True, stream=True)
        self.assertEqual(chunks[-1]["version"], 3)

    def test_what_is_not_built_is_refused_by_name(self):
        for body, status, param in (
                ({}, 422, "model"), ({"model": "none"}, 404, "model"),
                ({"session": "none"}, 404, "id"), ({"session": "a", "model": "events"}, 422, "model"),
                ({"model": "bytes", "learn": True}, 422, "learn"),
                ({"model": "associative"}, 422, "model"), ({"model": "events"}, 422, "model"),
                ({"session": "a", "n": 2}, 422, "n"), ({"session": "a", "best_of": 2}, 422, "best_of"),
                ({"session": "a", "echo": True}, 422, "echo"),
                ({"session": "a", "logprobs": 3}, 422, "logprobs"),
                ({"session": "a", "presence_penalty": 0.5}, 422, "presence_penalty"),
                ({"session": "a", "prompt": ["a", "b"]}, 422, "prompt"),
                ({"session": "a", "prompt": [256]}, 422, "prompt"),
                ({"session": "a", "prompt": 7}, 422, "prompt"),
                ({"session": "a", "max_tokens": 0}, 422, "max_tokens"),
                ({"session": "a", "stream_options": {"x": 1}}, 422, "x"),
                ({"session": "a", "suffix": "x"}, 422, "suffix"),
                ({"session": "../a"}, 422, "session")):
            for stream in (False, True):
                r = self.c.call("POST", "/v1/completions", {**body, "stream": stream})
                self.assertEqual(self.refused(r, status)["param"], param, body)
        r = self.ai.completions(session="a", n=1, best_of=1, echo=False, user="me",
                                frequency_penalty=0, presence_penalty=0.0)
        self.assertEqual(r["usage"]["completion_tokens"], 16)


class Tokens(fw.Case):
    """A model of random numbers whose tokens are words and pieces of characters; a bias says
    which of them come."""

    WORDS = [b"ab.cd", "-\u4e16".encode()[:3], "\u4e16-".encode()[2:], b"xy", b"z\n", b".c"]

    def setUp(self):
        super().setUp()
        top = tempfile.mkdtemp(prefix="fw-models-")
        self.addCleanup(shutil.rmtree, top)
        words = [bytes([b]) for b in range(256)] + self.WORDS
        path = checkpoints.make_gpt2(top, vocab=1 + len(words))
        config = os.path.join(path, "config.json")
        with open(config) as f:
            asked = json.load(f)
        with open(config, "w") as f:
            json.dump({**asked, "tokenizer": "rwkv_world"}, f)
        with open(os.path.join(path, "rwkv_vocab.txt"), "w") as f:
            for i, word in enumerate(words):
                f.write(f"{i + 1} {word!r} {len(word)}\n")
        self.d = self.daemon("--models-dir", top)
        self.c = self.d.client()
        self.ai = OpenAI(self.d.port)
        self.c.create("a", "noise")

    def only(self, *words, **o):
        ids = [257 + self.WORDS.index(w) for w in words]
        return {"max_tokens": 12, "temperature": 100, "top_k": len(ids),
                "logit_bias": {str(i): 100 for i in ids}, **o}

    def test_a_stop_string_inside_of_a_token_cuts_the_text_there(self):
        got = self.c.post("a", "generate", self.only(b"ab.cd", temperature=0, stop=".c"))
        self.assertEqual((got["text"], got["tokens"], got["finish_reason"]), ("ab", [], "stop"))
        got = self.c.post("a", "generate", self.only(b"ab.cd", temperature=0, stop="dab.cdab."))
        self.assertEqual((got["text"], got["tokens"]), ("ab.c", []))
        stream = Stream(self.d.port, "/v1/sessions/a/generate",
                        self.only(b"ab.cd", temperature=0, stop=".c", stream=True))
        with contextlib.closing(stream):
            objects, _ = stream.all()
        self.assertEqual([e["text"] for e in objects], ["ab", "ab"])
        got = self.ai.completions(session="a", **self.only(b"ab.cd", temperature=0, stop=".c"))
        self.assertEqual(got["choices"][0]["text"], "ab")

    def test_streams_of_pieces_of_characters_are_whole(self):
        for seed in range(8):
            o = self.only(*self.WORDS, seed=seed, prefix="xyz", stop=["z\nab", "xyxyz"],
                          max_tokens=150)
            whole = self.c.post("a", "generate", o)
            self.assertGreater(len(set(whole["tokens"])), 0)
            stream = Stream(self.d.port, "/v1/sessions/a/generate", {**o, "stream": True})
            with contextlib.closing(stream):
                objects, _ = stream.all()
            self.assertEqual(objects.pop(), whole)
            self.assertEqual([t for e in objects for t in e["tokens"]], whole["tokens"])
            self.assertEqual("".join(e["text"] for e in objects), whole["text"])
            del o["prefix"]
            text = self.ai.completions(session="a", prompt="xyz", **o)["choices"][0]["text"]
            self.assertEqual(text, whole["text"])
            chunks = self.ai.completions(model="noise", prompt="xyz", **o, stream=True)
            self.assertEqual("".join(c["choices"][0]["text"] for c in chunks), whole["text"])

    def test_what_is_learned_of_a_stopped_text_are_its_whole_tokens(self):
        self.c.ok("POST", "/v1/sessions/a/fork", {"id": "b"})
        o = self.only(b"ab.cd", b"xy", seed=2, max_tokens=60, stop="ab.cdab.")
        got = self.ai.completions(session="a", prompt="xyz", learn=True, **o)
        self.assertEqual(got["choices"][0]["finish_reason"], "stop")
        prompt = [257 + self.WORDS.index(b"xy"), ord("z") + 1]
        self.assertEqual(got["usage"]["prompt_tokens"], len(prompt))
        tokens = self.c.post("b", "generate", {**o, "prefix": "xyz"})["tokens"]
        self.assertEqual(got["tokens_seen"], len(prompt) + len(tokens))
        self.c.post("b", "learn", {"tokens": prompt + tokens})
        self.assertEqual(self.c.hash("a"), self.c.hash("b"))


if __name__ == "__main__":
    fw.main()
