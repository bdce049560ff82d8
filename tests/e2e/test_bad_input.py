#!/usr/bin/python3
"""What is wrong is refused, says what is wrong, and leaves version and hash as they were."""
import contextlib
import json
import math
import struct
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

ST = "application/vnd.safetensors"
BAD_IDS = ("a%2Fb", "..", "%2e%2e", "a%00b", "%00", "x" * 129, "-a", ".a", "_a", "a%20b", "a%0ab",
           "caf%C3%A9", "a%FF", "a%", "%zz", "a+b", "~", "a:b")


class BadInput(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()

    @contextlib.contextmanager
    def unchanged(self, *ids):
        def look():
            return [(f["version"], f["tokens_seen"], f["hash"])
                    for f in (self.c.facts(id, hash=True) for id in ids)]
        before = look()
        yield
        self.assertEqual(look(), before)

    def put(self, id, file):
        return self.c.call("PUT", f"/v1/sessions/{id}/import", file, type=ST)

    def taught(self, m, id, n=200):
        m.create(self.c, id)
        m.learn(self.c, id, m.tokens(n))
        return self.c.export(id)

    def test_a_truncated_import_is_refused(self):
        for m in (s.DELTA, s.AUTO):
            file = self.taught(m, m.name.split()[0])
            head = 8 + struct.unpack("<Q", file[:8])[0]
            cuts = [0, 1, 7, 8, 9, head - 1, head, head + 1, len(file) // 2, len(file) - 1]
            if m is s.DELTA:
                cuts += range(0, len(file), 37)
            with self.unchanged(m.name.split()[0]):
                for n in cuts:
                    self.refused(self.put(m.name.split()[0], file[:n]), 422)
                self.refused(self.put(m.name.split()[0], file + b"\0"), 422)

    def flips(self, m):
        """Every header byte and 1,000 body bytes, one bit each: all 422."""
        id = m.name.split()[0]
        file = bytearray(self.taught(m, id))
        head = 8 + struct.unpack("<Q", file[:8])[0]
        body = range(head, len(file))
        places = [*range(head), *self.random.sample(body, min(len(body), 1000))]
        with self.unchanged(id):
            for at in places:
                bit = 1 << self.random.randrange(8)
                file[at] ^= bit
                r = self.put(id, file)
                self.assertEqual(r.status, 422, f"byte {at} of {len(file)}, bit {bit}: {r!r}")
                file[at] ^= bit
            self.refused(r, 422)
        self.assertEqual(self.put(id, file).status, 200)

    def test_every_flipped_bit_of_a_memorys_import_is_refused(self):
        self.flips(s.DELTA)
        self.flips(s.GATED)

    def test_every_flipped_bit_of_a_streams_import_is_refused(self):
        for m in (s.AUTO, s.EVENTS):
            self.flips(m)

    def sane_or_refused(self, m, id, file, bodies):
        """True when taken: then it learns the bodies and answers finite numbers."""
        before = self.c.hash(id)
        r = self.put(id, file)
        if r.status == 422:
            self.refused(r, 422)
            self.assertEqual(self.c.hash(id), before)
            return False
        self.assertEqual(r.status, 200, r)
        word = "surprise" if m.kind == "stream" else "residual"
        for body, type in bodies:
            got = self.c.post(id, "learn", body, type=type)[word]
            self.assertTrue(math.isfinite(got["mean"]), got)
        text = json.dumps(m.read(self.c, id))
        self.assertNotIn("NaN", text)
        self.assertNotIn("Infinity", text)
        self.c.get(id, "inspect")
        return True

    def ten_thousand(self, m):
        """Bodies of 10,000 tokens, the first one short."""
        x = m.tokens(10000, 4)
        return [m.body(x[:50]), m.packed(x[50:])]

    def resealed(self, m, count):
        """Flips bits of every tensor and makes the hashes right again."""
        id = m.name.split()[0]
        file = self.taught(m, id, 3000 if m.kind == "stream" else 200)
        listed, size = self.c.get(id, "tensors")["data"], self.c.facts(id)["state_bytes"]
        bodies = self.ten_thousand(m)
        tensors = s.st_read(file)[0]
        self.assertEqual(s.reseal(file, {}, listed, size), file)
        taken = 0
        for i in range(count):
            name = listed[i % len(listed)]["name"]
            data = bytearray(tensors[name][2])
            for _ in range(self.random.choice([1, 1, 4])):
                data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            bad = s.reseal(file, {name: bytes(data)}, listed, size)
            taken += self.sane_or_refused(m, id, bad, bodies)
        print(f"# {m.name}: {taken} of {count} validated", flush=True)
        self.assertEqual(self.put(id, file).status, 200)

    def test_a_forged_stream_with_right_hashes_is_refused_or_learns_on(self):
        for m in (s.AUTO, s.LOG, s.EVENTS):
            self.resealed(m, 350 if fw.FULL else 60)

    def test_a_forged_memory_with_right_hashes_is_refused_or_learns_on(self):
        for m in (s.DELTA, s.GATED):
            self.resealed(m, 500 if fw.FULL else 100)

    def test_a_forged_header_with_right_hashes_is_refused_or_learns_on(self):
        for m in (s.DELTA, s.AUTO, s.EVENTS):
            id = "h" + m.name.split()[0]
            file = bytearray(self.taught(m, id))
            head = 8 + struct.unpack("<Q", file[:8])[0]
            seal = file.index(s.st_read(file)[1]["file_hash"].encode(), 0, head)
            bodies = [m.body(m.tokens(50, 4))]
            for at in range(head):
                if seal <= at < seal + 32:
                    continue
                bad = bytearray(file)
                bad[at] ^= 1 << self.random.randrange(8)
                bad[seal:seal + 32] = b"0" * 32
                bad[seal:seal + 32] = s.xxh128(bad).encode()
                self.sane_or_refused(m, id, bytes(bad), bodies)

    def test_forged_tensors_of_nonsense_are_refused_or_learn_on(self):
        for m in (s.AUTO, s.EVENTS, s.GATED, s.PROBED):
            id = "n" + m.name.split()[0]
            file = self.taught(m, id)
            listed, size = self.c.get(id, "tensors")["data"], self.c.facts(id)["state_bytes"]
            bodies = self.ten_thousand(m)
            for t in listed:
                for fill in (b"\xff", b"\x7f", b"\x80", b"\x00\x00\x80\x7f", b"\0"):
                    bad = {t["name"]: (fill * t["bytes"])[:t["bytes"]]}
                    self.sane_or_refused(m, id, s.reseal(file, bad, listed, size), bodies)

    def learns_on(self, m, id, file, tokens):
        """Refused; or it learns, is written, read back, and its own export is taken again."""
        if not self.sane_or_refused(m, id, file, [m.packed(tokens)]):
            return
        before = self.c.hash(id)
        self.d.restart()
        self.c = self.d.client()
        self.assertEqual(self.c.hash(id), before)
        self.assertEqual(self.put(id, self.c.export(id)).status, 200)

    def test_forged_counts_at_their_ends_are_refused_or_learn_on(self):
        for m in (s.AUTO, s.EVENTS, s.DELTA):
            id = "c" + m.name.split()[0]
            file = self.taught(m, id, 500)
            for seen in (2**63 - 1, 2**63 - 9, 2**62, 2**61):
                self.learns_on(m, id, s.retell(file, "tokens_seen", str(seen)), m.tokens(50))
        for m in (s.AUTO, s.EVENTS):
            id = "c" + m.name.split()[0]
            file = self.taught_again(m, id)
            tally = s.st_read(file)[0]["tally"][2]
            for n in (2**63, 2**63 - 1, 2**63 - 2):
                for nats in (1.0, 2.0**60, 1e18):
                    bad = struct.pack("<Qd", n, nats) + tally[16:]
                    self.learns_on(m, id, self.sealed(id, file, {"tally": bad}), m.tokens(500, 4))

    def taught_again(self, m, id):
        self.c.ok("DELETE", f"/v1/sessions/{id}")
        return self.taught(m, id, 2000)

    def sealed(self, id, file, changed):
        listed = self.c.get(id, "tensors")["data"]
        return s.reseal(file, changed, listed, self.c.facts(id)["state_bytes"])

    def test_forged_events_rows_visited_without_end_are_refused_or_learn_on(self):
        m = s.EVENTS
        file = self.taught(m, "e", 2000)
        for visits in (60001, 60002, 65535):
            rows = bytearray(s.st_read(file)[0]["rows"][2])
            for at in range(0, len(rows), 16):
                if rows[at:at + 2] != b"\0\0":
                    struct.pack_into("<H", rows, at + 2, visits)
            self.learns_on(m, "e", self.sealed("e", file, {"rows": bytes(rows)}), m.tokens(5000, 4))

    def test_a_forged_copy_of_an_id_that_nothing_speaks_for_is_refused_or_learns_on(self):
        m = s.EVENTS
        file = self.taught(m, "e", 2000)
        t = {name: bytearray(x[2]) for name, x in s.st_read(file)[0].items()}
        count = struct.unpack_from("<H", t["popularity"], 14)[0]
        total, seen = struct.unpack_from("<2I", t["unseen"], 12)
        struct.pack_into("<H", t["popularity"], 14, 0)
        struct.pack_into("<2I", t["unseen"], 12, total - count, seen - (count > 0))
        match = struct.unpack_from("<I", t["registers"], 4)[0]
        struct.pack_into("<I", t["registers"], 8, 10)
        struct.pack_into("<H", t["ring"], 2 * (match % (len(t["ring"]) // 2)), 7)
        t["copy_hit"], t["rows"] = bytes(32), bytes(len(t["rows"]))
        bad = self.sealed("e", file, {name: bytes(x) for name, x in t.items()})
        self.learns_on(m, "e", bad, [7] + m.tokens(2000, 4))

    def test_a_body_with_two_lengths_is_refused_and_the_connection_closed(self):
        s.AUTO.create(self.c, "a")
        with self.unchanged("a"):
            for lengths in ("Content-Length: 3\r\nContent-Length: 9",
                            "Content-Length: 3\r\nTransfer-Encoding: chunked",
                            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                            "Transfer-Encoding: gzip", "Content-Length : 3"):
                got = fw.raw_http(self.d.port, (
                    "POST /v1/sessions/a/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                    f"{lengths}\r\n\r\n3\r\nabc\r\n0\r\n\r\n").encode())
                self.assertTrue(got.startswith(b"HTTP/1.1 400"), got[:300])
                self.assertEqual(got.count(b"HTTP/1.1 "), 1, got)

    def test_an_import_of_another_model_config_or_size_is_refused(self):
        file = self.taught(s.AUTO, "auto")
        for m in (s.TEXT, s.EVENTS, s.DELTA,
                  s.Model("big", "bytes", {"preset": "auto", "state_bytes": 4 * s.MIB}, s.text)):
            id = "to-" + m.name.split()[0]
            m.create(self.c, id)
            with self.unchanged(id):
                self.refused(self.put(id, file), 422, 413)  # 413: larger than it may be
        delta = self.taught(s.DELTA, "delta")
        for i, m in enumerate((s.GATED, s.associative("delta", 2, 8, 4),
                               s.associative("delta", 1, 16, 8))):
            m.create(self.c, f"d{i}")
            with self.unchanged(f"d{i}"):
                self.refused(self.put(f"d{i}", delta), 422)
        with self.unchanged("auto"):
            for junk in (b"", b"{}", b"\0" * 100, b"\xff" * 100, struct.pack("<Q", 2) + b"{}",
                         struct.pack("<Q", 2**63) + b"{}" + bytes(99), s.st_write({})):
                self.refused(self.put("auto", junk), 422)

    def test_an_empty_session_exports_and_imports(self):
        for m in s.MODELS:
            id = m.name.split()[0]
            m.create(self.c, id)
            zero = self.c.hash(id)
            file = self.c.export(id)
            self.assertEqual(s.st_read(file)[1]["hash"], zero)
            m.learn(self.c, id, m.tokens(5))
            r = self.put(id, file)
            self.assertEqual((r.status, r.json["hash"], r.json["tokens_seen"]), (200, zero, 0), r)
            self.assertEqual(r.json["version"], 2)

    def test_missing_sessions_and_snapshots_are_404(self):
        s.DELTA.create(self.c, "m")
        with self.unchanged("m"):
            r = self.c.call("POST", "/v1/sessions/m/snapshots/none/restore")
            self.assertEqual(self.refused(r, 404)["reason"], "snapshot_not_found")
        for method, verb, body in (("POST", "learn", {"text": "x"}), ("POST", "predict", {}),
                                   ("POST", "score", {"text": "x"}), ("GET", "inspect", None),
                                   ("POST", "recall", {"queries": []}), ("GET", "export", None),
                                   ("POST", "fork", {}), ("POST", "checkpoint", None),
                                   ("GET", "snapshots", None), ("GET", "tensors", None),
                                   ("POST", "snapshots", {"name": "x"}),
                                   ("POST", "generate", {"max_tokens": 1}), ("GET", "", None)):
            r = self.c.call(method, f"/v1/sessions/none/{verb}".rstrip("/"), body)
            self.assertEqual(self.refused(r, 404)["reason"], "session_not_found", verb)

    def pairs_refused(self, id, body, *words, verb="learn"):
        e = self.refused(self.c.call("POST", f"/v1/sessions/{id}/{verb}", body), 422)
        for w in words:
            self.assertIn(w, e["message"] + " " + str(e["param"]), body)

    def test_wrong_pairs_are_refused_and_pair_and_head_are_named(self):
        m = s.GATED
        m.create(self.c, "m")

        def body(n=3, **change):
            b = json.loads(m.body(m.tokens(n))[0])
            return {**b, **change}
        good = body()
        with self.unchanged("m"):
            for at, name in ((1, "keys"), (2, "values")):
                for x in (1.1e6, -1e30, 1e39):
                    bad = json.loads(json.dumps(good))
                    bad[name][at][1][3] = x
                    self.pairs_refused("m", bad, name, "pair", str(at), "head", "1")
            for change in ({"beta": -0.1}, {"beta": 1000.0}, {"log_g": 0.01}):
                (k, v), = change.items()
                bad = json.loads(json.dumps(good))
                bad[k][2][1] = v
                self.pairs_refused("m", bad, k, "pair", "2", "head", "1")
            for bad in ({"keys": good["keys"]}, {"values": good["values"]}, {}, [],
                        {**good, "keys": good["keys"][:2]}, {**good, "beta": good["beta"][:1]},
                        {**good, "keys": [k[:1] for k in good["keys"]]},
                        {**good, "values": [[v[:7] for v in p] for p in good["values"]]},
                        {**good, "keys": [p[0] for p in good["keys"]]},
                        {**good, "keys": "abc"}, {**good, "keys": [[["x"] * 8] * 2] * 3},
                        {**good, "keys": [[[None] * 8] * 2] * 3}, {"keys": [], "values": []},
                        {**good, "queries": good["keys"][:2]}, {**good, "beta": 0.5},
                        {**good, "keys": [good["keys"][0], [], []]}, {**good, "extra": 1},
                        {"text": "x"}, {"tokens": [1]}):
                self.pairs_refused("m", bad)
                self.pairs_refused("m", bad, verb="score")
            for bad in ({}, {"queries": []}, {"queries": [[1.0] * 8]}, {"queries": good["values"][0]},
                        {"queries": good["keys"], "candidates": [[[1.0] * 7] * 2]},
                        {"queries": good["keys"], "top_candidates": 3},
                        {"queries": [[[1e7] * 8] * 2]}):
                self.pairs_refused("m", bad, verb="recall")
            nan, inf = struct.pack("<I", 0x7fc00000), struct.pack("<I", 0xff800000)
            for x in (nan, inf):
                keys = s.floats([0.1] * 15) + x
                file = s.st_write({"keys": ("F32", [1, 2, 8], keys),
                                   "values": ("F32", [1, 2, 8], bytes(64))})
                r = self.c.call("POST", "/v1/sessions/m/learn", file, type=ST)
                self.assertIn("keys", str(self.refused(r, 422)))
            for change in ({"keys": ("F64", [1, 2, 8], bytes(64))},
                           {"keys": ("I32", [1, 2, 8], bytes(64))},
                           {"nonsense": ("F32", [1], bytes(4))},
                           {"keys": ("F32", [2, 8], bytes(64))},
                           {"keys": ("F32", [], bytes(4))}):
                file = s.st_write({"keys": ("F32", [1, 2, 8], bytes(64)),
                                   "values": ("F32", [1, 2, 8], bytes(64)), **change})
                r = self.c.call("POST", "/v1/sessions/m/learn", file, type=ST)
                reason = self.refused(r, 422)["reason"]
            self.assertEqual(reason, "bad_shape")

    def test_a_ranking_of_nothing_or_of_too_much_is_refused(self):
        s.DELTA.create(self.c, "m")
        self.c.create("one", "associative", {"rule": "delta", "heads": 1, "d_k": 1, "d_v": 1})

        def recall(id, queries, candidates, **query):
            file = s.st_write({k: ("F32", shape, bytes(4 * math.prod(shape)))
                               for k, shape in (("queries", queries), ("candidates", candidates))})
            return self.c.call("POST", f"/v1/sessions/{id}/recall", file, type=ST, **query)
        with self.unchanged("m", "one"):
            for queries, candidates in (([1, 2, 8], [0, 2, 8]), ([0, 2, 8], [0, 2, 8]),
                                        ([0, 2, 8], [1, 2, 8]), ([1, 2, 8], [0]), ([], [1, 2, 8])):
                self.refused(recall("m", queries, candidates), 422)
            self.refused(recall("one", [5000, 1], [1000, 1], top_candidates=1000), 413)
            self.refused(recall("one", [100000, 1], [100000, 1], top_candidates=1), 413)
            self.assertEqual(recall("one", [4000, 1], [1000, 1], top_candidates=1000).status, 200)

    def test_wrong_tokens_are_refused(self):
        s.AUTO.create(self.c, "a")
        s.EVENTS.create(self.c, "e")
        with self.unchanged("a", "e"):
            for id, bodies in (
                    ("a", ({"tokens": [256]}, {"tokens": [-1]}, {"tokens": [1.5]}, {"text": ""},
                           {"tokens": []}, {"tokens": ["a"]}, {"tokens": "a"}, {"text": 1}, {},
                           {"tokens": [2**63]}, {"tokens": [2**80]}, {"tokens": [[1]]},
                           {"text": "a", "tokens": [1]}, {"keys": [[1]], "values": [[1]]})),
                    ("e", ({"tokens": [300]}, {"tokens": [65536]}, {"text": "a"}, {"tokens": []},
                           {"tokens": [1, 2, None]}, {"tokens": {"a": 1}}))):
                for verb in ("learn", "score"):
                    for body in bodies:
                        r = self.c.call("POST", f"/v1/sessions/{id}/{verb}", body)
                        self.refused(r, 400, 422)
                    r = self.c.call("POST", f"/v1/sessions/{id}/{verb}", b"",
                                    type="application/octet-stream")
                    self.refused(r, 422)
            for raw in (b"x", b"xxx", struct.pack("<2H", 1, 300)):
                r = self.c.call("POST", "/v1/sessions/e/learn", raw,
                                type="application/octet-stream")
                self.refused(r, 422)
            for dtype, shape, data in (("F32", [2], bytes(8)), ("U8", [1, 1], b"x"),
                                       ("U8", [0], b""), ("I64", [1], struct.pack("<q", -1)),
                                       ("I64", [1], struct.pack("<q", 256)), ("BOOL", [1], b"\1")):
                file = s.st_write({"tokens": (dtype, shape, data)})
                self.refused(self.c.call("POST", "/v1/sessions/a/learn", file, type=ST), 422)
            for body in ({"prefix": 3}, {"prefix": [256]}, {"top_logprobs": 0},
                         {"top_logprobs": 1001}, {"top_logprobs": 1.5}, {"full": 1}):
                self.refused(self.c.call("POST", "/v1/sessions/a/predict", body), 422)
            for body in ({}, {"max_tokens": 0}, {"max_tokens": 65537}, {"max_tokens": -1},
                         {"max_tokens": 5, "temperature": -1}, {"max_tokens": 5, "seed": -1},
                         {"max_tokens": 5, "seed": "x"}, {"max_tokens": 5, "learn": "yes"},
                         {"max_tokens": 5, "temperature": "hot"}):
                self.refused(self.c.call("POST", "/v1/sessions/a/generate", body), 422)

    def test_broken_json_is_refused(self):
        s.AUTO.create(self.c, "a")
        broken = (b"", b"{", b"}", b"nul", b'{"text":"a"', b'{"text":"a"}x', b"\xff\xfe{}",
                  b'{"text":"\xff"}', b'{"text":"\\ud800"}', b'{"text":NaN}', b'{"tokens":[1e999]}',
                  b"[" * 100000, b'{"a":' * 50000, b"{'text':'a'}", b'{"text":"a",}', b'{"text" "a"}')
        other = (b"[]", b"1", b'"x"', b"null", b'{"text":"a","text":"b"}')
        with self.unchanged("a"):
            for verb in ("learn", "score", "predict", "generate", "fork", "snapshots"):
                for body in broken:
                    if body == b"" and verb == "fork":
                        continue
                    r = self.c.call("POST", f"/v1/sessions/a/{verb}", body,
                                    type="application/json")
                    self.refused(r, 400, 422)
                for body in other:
                    r = self.c.call("POST", f"/v1/sessions/a/{verb}", body,
                                    type="application/json")
                    self.refused(r, 400, 422)
            for body in broken + other:
                self.refused(self.c.call("POST", "/v1/sessions", body, type="application/json"),
                             400, 422)

    def test_bad_ids_and_names_are_refused_everywhere(self):
        s.AUTO.create(self.c, "a")
        with self.unchanged("a"):
            for bad in BAD_IDS:
                for method, path in (("GET", f"/v1/sessions/{bad}"),
                                     ("DELETE", f"/v1/sessions/{bad}"),
                                     ("POST", f"/v1/sessions/{bad}/learn"),
                                     ("GET", f"/v1/sessions/a/snapshots/{bad}"),
                                     ("POST", f"/v1/sessions/a/snapshots/{bad}/restore"),
                                     ("GET", f"/v1/sessions/a/tensors/{bad}"),
                                     ("GET", f"/v1/models/{bad}")):
                    r = self.c.call(method, path, {"text": "x"} if method == "POST" else None)
                    self.refused(r, 400, 404, 422)
            for bad in ("a/b", "..", "a\0b", "\0", "", "x" * 129, "-a", ".a", "_a", "a b", "caf\u00e9",
                        1, None, [], {}):
                if bad is not None:
                    self.refused(self.c.call("POST", "/v1/sessions", {"id": bad, "model": "bytes"}),
                                 422, 400)
                    self.refused(self.c.call("POST", "/v1/sessions/a/fork", {"id": bad}), 422, 400)
                self.refused(self.c.call("POST", "/v1/sessions/a/snapshots", {"name": bad}), 422, 400)
                self.refused(self.c.call("POST", "/v1/sessions", {"model": bad}), 422, 400, 404)
            self.assertEqual([x["id"] for x in self.c.ok("GET", "/v1/sessions")["data"]], ["a"])
        for good in ("x" * 128, "A.b_c-9", "0"):
            s.DELTA.create(self.c, good)
            self.assertEqual(self.c.facts(good)["id"], good)

    def test_wrong_configurations_name_the_key(self):
        for model, config, key in (
                ("bytes", {"preset": "none"}, "preset"), ("bytes", {"preset": 1}, "preset"),
                ("bytes", {"state_bytes": 12345}, "state_bytes"),
                ("bytes", {"state_bytes": 1e300}, "state_bytes"),
                ("bytes", {"state_bytes": "1"}, "state_bytes"), ("bytes", {"vocab": 3}, "vocab"),
                ("events", {"vocab": 1}, "vocab"), ("events", {"vocab": 65537}, "vocab"),
                ("events", {"vocab": 2.5}, "vocab"), ("associative", {"rule": "none"}, "rule"),
                ("associative", {"rule": "delta", "heads": 0, "d_k": 4, "d_v": 4}, "heads"),
                ("associative", {"rule": "delta", "heads": 1, "d_k": -4, "d_v": 4}, "d_k"),
                ("associative", {"rule": "delta", "heads": 1, "d_k": 4, "d_v": 1e9}, "d_v"),
                ("associative", {"rule": "delta", "heads": 1, "d_k": 4, "d_v": 4, "beta": -1},
                 "beta"),
                ("associative", {"rule": "delta", "heads": 1, "d_k": 4, "d_v": 4,
                                 "key_norm": "l3"}, "key_norm")):
            r = self.c.call("POST", "/v1/sessions", {"id": "x", "model": model, "config": config})
            self.assertIn(key, str(self.refused(r, 422)["param"]), r)
        for labels in ([], {"a": 1}, {"a": None}, {str(i): "" for i in range(33)}, "x"):
            self.refused(self.c.call("POST", "/v1/sessions", {"id": "x", "model": "bytes",
                                                              "labels": labels}), 422)
        self.refused(self.c.call("GET", "/v1/sessions/x"), 404)

    def test_bodies_over_the_limit_are_413_and_name_it(self):
        d = self.daemon("--max-body-bytes", "100000")
        c = d.client()
        s.AUTO.create(c, "a")
        s.DELTA.create(c, "m")
        self.assertEqual(c.post("a", "learn", s.text(100000), type="text/plain")["tokens"], 100000)
        before = c.hash("a")

        def head(path, length, method="POST", type="text/plain"):
            return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {type}\r\n"
                    f"{length}\r\n\r\n").encode()

        for sent in (head("/v1/sessions/a/learn", "Content-Length: 100001") + s.text(100001),
                     head("/v1/sessions/a/learn", "Content-Length: 99999999999"),
                     head("/v1/sessions/a/learn", "Transfer-Encoding: chunked")
                     + (b"8000\r\n" + b"x" * 0x8000 + b"\r\n") * 5 + b"0\r\n\r\n",
                     head("/v1/sessions/m/import",
                          f"Content-Length: {c.facts('m')['state_bytes'] + s.MIB + 1}", "PUT", ST)):
            got = fw.raw_http(d.port, sent)
            self.assertTrue(got.startswith(b"HTTP/1.1 413"), got[:300])
            self.assertIn(b"too_large_error", got)
        got = fw.raw_http(d.port, head("/v1/sessions/a/learn", "Content-Length: 100001"))
        self.assertIn(b"100000", got.split(b"\r\n\r\n")[-1])
        self.assertEqual(c.hash("a"), before)

    def test_what_is_not_http_is_refused_and_the_server_goes_on(self):
        for data in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50,
                     b"GET " + b"a" * 200000 + b" HTTP/1.1\r\n\r\n", b"POST /v1/sessions HTTP/1.1\r\n"
                     b"Content-Length: -5\r\nHost: localhost\r\n\r\n", b"GET /healthz HTTP/1.1\r\n" +
                     b"X: y\r\n" * 50000 + b"\r\n"):
            got = fw.raw_http(self.d.port, data)
            self.assertFalse(got.startswith(b"HTTP/1.1 200"), got[:100])
            self.assertEqual(self.c.ok("GET", "/healthz"), {"status": "ok"})

    def test_a_client_that_leaves_in_the_middle_of_a_body_changes_nothing(self):
        s.AUTO.create(self.c, "a")
        with self.unchanged("a"):
            for n in (0, 1, 500, 999):
                data = (b"POST /v1/sessions/a/learn HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                        b"text/plain\r\nContent-Length: 1000\r\n\r\n" + b"x" * n)
                with fw.socket.create_connection(("127.0.0.1", self.d.port)) as sock:
                    sock.sendall(data)

    def test_an_id_that_is_used_again_starts_from_the_canonical_state(self):
        for m in s.MODELS:
            id = m.name.split()[0]
            m.create(self.c, id)
            zero = self.c.hash(id)
            for ending in ("delete", "restart"):
                m.learn(self.c, id, m.tokens(300))
                self.c.post(id, "snapshots", {"name": "old"})
                self.assertNotEqual(self.c.hash(id), zero)
                self.c.ok("DELETE", f"/v1/sessions/{id}")
                if ending == "restart":
                    self.d.restart(hard=True)
                    self.c = self.d.client()
                self.refused(self.c.call("GET", f"/v1/sessions/{id}"), 404)
                m.create(self.c, id)
                self.assertEqual(self.c.hash(id), zero)
                self.assertEqual(self.c.get(id, "snapshots")["data"], [])
                self.assertEqual(self.c.facts(id)["version"], 0)


if __name__ == "__main__":
    fw.main()
