#!/usr/bin/python3
"""Every endpoint once with its documented reply, and what every endpoint has in common."""
import json
import math
import re
import struct
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402
import streams as s  # noqa: E402

FACTS = {"id", "model", "kind", "config", "config_hash", "state_bytes", "version",
         "durable_version", "tokens_seen", "created_at", "labels", "parent", "resident"}
LEARNED = {"version", "durable_version", "tokens_seen", "tokens", "surprise"}


class Api(fw.Case):
    def setUp(self):
        super().setUp()
        self.d = self.daemon()
        self.c = self.d.client()

    def fields(self, got, need, may=()):
        self.assertLessEqual(set(need), set(got))
        self.assertLessEqual(set(got), set(need) | set(may))

    def test_the_server_tells_that_it_lives_is_ready_and_what_it_is(self):
        self.assertEqual(self.c.ok("GET", "/healthz"), {"status": "ok"})
        self.assertEqual(self.c.ok("GET", "/readyz"), {"ready": True, "reasons": []})
        version = self.c.ok("GET", "/version")
        self.fields(version, {"name", "version", "api", "cpu_level", "compiler"})
        self.assertEqual((version["name"], version["api"]), ("fastweightd", "v1"))
        metrics = self.c.call("GET", "/metrics")
        self.assertEqual(metrics.status, 200)
        self.assertIn("text/plain", metrics.headers["Content-Type"])
        self.assertRegex(metrics.body.decode(), r"(?m)^fastweight\w*_total(\{.*\})? \d+")
        s.AUTO.create(self.c, "its-own-name")
        s.AUTO.learn(self.c, "its-own-name", s.text(500))
        text = self.c.call("GET", "/metrics").body.decode()
        self.assertNotIn("its-own-name", text)
        self.assertRegex(text, r"(?m)^fastweightd_tokens_learned_total 500$")
        self.assertRegex(text, r"(?m)^fastweightd_shared_passes_total 0$")

    def test_models_are_listed_and_shown_one_by_one(self):
        data = self.c.ok("GET", "/v1/models")["data"]
        self.assertEqual({"bytes", "events", "associative"}, {m["id"] for m in data})
        for m in data:
            self.fields(m, {"id", "kind", "vocab", "state_bytes", "config"})
            self.assertEqual(self.c.ok("GET", f"/v1/models/{m['id']}"), m)
        self.assertEqual(self.c.ok("GET", "/v1/models/bytes")["state_bytes"], 4 << 20)
        e = self.refused(self.c.call("GET", "/v1/models/none"), 404)
        self.assertEqual(e["reason"], "model_not_found")

    def test_a_session_is_created_shown_labelled_listed_and_deleted(self):
        r = self.c.call("POST", "/v1/sessions", {"id": "a", "model": "bytes",
                                                 "config": s.AUTO.config, "labels": {"k": "v"}})
        self.assertEqual((r.status, r.headers["Location"]), (201, "/v1/sessions/a"), r)
        self.fields(r.json, FACTS, {"hash"})
        self.assertEqual((r.json["version"], r.json["tokens_seen"], r.json["parent"]), (0, 0, None))
        self.assertEqual((r.json["state_bytes"], r.json["labels"]), (s.MIB, {"k": "v"}))
        self.assertRegex(r.json["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.assertEqual(r.json["config"]["preset"], "auto")
        e = self.refused(self.c.call("POST", "/v1/sessions", {"id": "a", "model": "bytes"}), 409)
        self.assertEqual((e["type"], e["reason"]), ("conflict_error", "session_exists"))
        shown = self.c.call("GET", "/v1/sessions/a")
        self.fields(shown.json, FACTS)
        self.assertRegex(shown.headers["ETag"], r'^"\w+-0"$')
        self.assertRegex(self.c.hash("a"), r"^[0-9a-f]{32}$")
        patched = self.c.ok("PATCH", "/v1/sessions/a", {"labels": {"x": "y", "z": ""}})
        self.assertEqual(patched["labels"], {"x": "y", "z": ""})
        self.assertEqual(self.c.facts("a")["labels"], {"x": "y", "z": ""})
        made = self.c.ok("POST", "/v1/sessions", {"model": "bytes"})
        self.assertRegex(made["id"], r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
        gone = self.c.call("DELETE", "/v1/sessions/a")
        self.assertEqual((gone.status, gone.body), (204, b""))
        self.assertEqual(self.refused(self.c.call("GET", "/v1/sessions/a"), 404)["reason"],
                         "session_not_found")
        self.refused(self.c.call("DELETE", "/v1/sessions/a"), 404)

    def test_the_list_is_sorted_filtered_and_paged(self):
        names = [f"p{i:02d}" for i in range(25)] + ["q1", "q2"]
        for n in reversed(names):
            s.DELTA.create(self.c, n)
        whole = self.c.ok("GET", "/v1/sessions")
        self.fields(whole, {"data", "has_more", "last_id"})
        self.assertEqual([f["id"] for f in whole["data"]], names)
        self.assertFalse(whole["has_more"])
        seen, after = [], None
        while True:
            q = {"prefix": "p", "limit": 10, **({"after": after} if after else {})}
            page = self.c.ok("GET", "/v1/sessions", **q)
            seen += [f["id"] for f in page["data"]]
            if not page["has_more"]:
                break
            self.assertEqual(len(page["data"]), 10)
            after = page["last_id"]
            self.assertEqual(after, seen[-1])
        self.assertEqual(seen, names[:25])
        for bad in ("0", "1001", "-1", "x", "1.5", ""):
            self.refused(self.c.call("GET", "/v1/sessions", limit=bad), 422)

    def test_learn_takes_every_documented_body_and_they_mean_the_same(self):
        data = b"one line\nand a second one\n"
        tokens = s.st_write({"tokens": ("U8", [len(data)], data)})
        bodies = [(json.dumps({"text": data.decode()}).encode(), "application/json"),
                  (json.dumps({"tokens": list(data)}).encode(), "application/json"),
                  (json.dumps({"tokens": list(data)}).encode(), "application/json; charset=utf-8"),
                  (data, "text/plain"), (data, "text/plain; charset=utf-8"),
                  (data, "application/octet-stream"), (tokens, "application/vnd.safetensors")]
        hashes = set()
        for i, (body, type) in enumerate(bodies):
            s.AUTO.create(self.c, f"b{i}")
            r = self.c.post(f"b{i}", "learn", body, type=type, hash=True)
            self.fields(r, LEARNED | {"hash"})
            self.assertEqual((r["version"], r["tokens"], r["tokens_seen"]),
                             (1, len(data), len(data)))
            self.assertEqual(r["durable_version"], 1)
            hashes.add((r["hash"], r["surprise"]["total"]))
        self.assertEqual(len(hashes), 1)
        ids = s.events(40)
        hashes = set()
        for i, (body, type) in enumerate([
                (json.dumps({"tokens": ids}).encode(), "application/json"),
                (struct.pack("<40H", *ids), "application/octet-stream"),
                (s.st_write({"tokens": ("U16", [40], struct.pack("<40H", *ids))}),
                 "application/vnd.safetensors"),
                (s.st_write({"tokens": ("I64", [40], struct.pack("<40q", *ids))}),
                 "application/vnd.safetensors")]):
            s.EVENTS.create(self.c, f"e{i}")
            hashes.add(self.c.post(f"e{i}", "learn", body, type=type, hash=True)["hash"])
        self.assertEqual(len(hashes), 1)

    def test_surprise_comes_as_none_mean_lines_or_tokens(self):
        data = b"one line\nand a second one\n\nlast without end"
        s.AUTO.create(self.c, "a")
        got = {}
        for how in ("tokens", "lines", "mean"):
            got[how] = self.c.post("a", "score", data, type="text/plain", surprise=how)["surprise"]
            self.fields(got[how], {"mean", "total"}, {how})
        self.assertNotIn("surprise",
                         self.c.post("a", "score", data, type="text/plain", surprise="none"))
        bits = got["tokens"]["tokens"]
        self.assertEqual(len(bits), len(data))
        self.assertTrue(all(b > 0 for b in bits))
        self.assertAlmostEqual(got["mean"]["total"], math.fsum(bits), delta=1e-9 * sum(bits))
        self.assertAlmostEqual(got["mean"]["mean"] * len(data), got["mean"]["total"], places=6)
        at = 0
        for line, text in zip(got["lines"]["lines"], data.splitlines(True), strict=True):
            self.assertEqual((line["start"], line["tokens"]), (at, len(text)))
            self.assertAlmostEqual(line["bits"], sum(bits[at:at + len(text)]), places=6)
            at += len(text)
        r = self.c.call("POST", "/v1/sessions/a/score", data, type="text/plain",
                        headers={"Accept": "application/vnd.safetensors"}, surprise="tokens")
        self.assertEqual(r.headers["Content-Type"], "application/vnd.safetensors")
        tensors, meta = s.st_read(r.body)
        self.assertEqual(tensors["surprise"][:2], ("F64", [len(data)]))
        self.assertEqual(list(s.doubles(tensors["surprise"][2])), bits)
        self.assertEqual(int(meta["version"]), 0)
        long = s.text(70000)
        e = self.refused(self.c.call("POST", "/v1/sessions/a/score", long, type="text/plain",
                                     surprise="tokens"), 422)
        self.assertEqual(e["param"], "surprise")
        r = self.c.call("POST", "/v1/sessions/a/learn", long, type="text/plain",
                        headers={"Accept": "application/vnd.safetensors"}, surprise="tokens")
        self.assertEqual(s.st_read(r.body)[0]["surprise"][1], [70000])

    def test_predict_recall_and_generate_answer_as_documented(self):
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", b"abc abc abc abc abc", type="text/plain")
        p = self.c.post("a", "predict", {})
        self.fields(p, {"version", "top"})
        self.assertEqual(len(p["top"]), 10)
        for t in p["top"]:
            self.fields(t, {"token", "logprob"}, {"text", "bytes_base64"})
        self.assertEqual(self.c.post("a", "predict", {"prefix": " ab"})["top"][0]["token"], 99)
        full = self.c.post("a", "predict", {"prefix": list(b" ab"), "full": True,
                                            "top_logprobs": 3})
        self.assertEqual((len(full["logprobs"]), len(full["top"])), (256, 3))
        g = self.c.post("a", "generate", {"max_tokens": 12, "temperature": 0})
        self.fields(g, {"version", "tokens", "text", "bytes_base64", "finish_reason", "surprise"})
        self.assertEqual(len(g["tokens"]), 12)
        drawn = [self.c.post("a", "generate", {"max_tokens": 30, "seed": seed,
                                               "temperature": 3.0})["tokens"] for seed in (7, 7, 8)]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        taught = self.c.post("a", "generate", {"max_tokens": 5, "learn": True})
        self.fields(taught, {"version", "tokens", "text", "bytes_base64", "finish_reason",
                             "surprise"}, {"durable_version", "tokens_seen", "hash"})
        self.assertEqual(self.c.facts("a")["version"], 2)
        self.assertEqual(self.c.facts("a")["tokens_seen"], 24)
        s.DELTA.create(self.c, "m")
        self.refused(self.c.call("POST", "/v1/sessions/m/predict", {}), 422)
        self.refused(self.c.call("POST", "/v1/sessions/m/generate", {"max_tokens": 1}), 422)
        self.refused(self.c.call("POST", "/v1/sessions/a/recall", {"queries": [[1.0]]}), 422)
        got = self.c.post("m", "recall", {"queries": [[[0.0] * 8] * 2]})
        self.fields(got, {"version", "values"})
        self.assertEqual(got["values"], [[[0.0] * 8] * 2])

    def test_generate_with_learn_equals_learning_what_it_generated(self):
        for name in ("a", "b"):
            s.AUTO.create(self.c, name)
            self.c.post(name, "learn", s.text(500), type="text/plain")
        made = self.c.post("a", "generate", {"max_tokens": 40, "seed": 3, "learn": True})
        self.c.post("b", "learn", {"tokens": made["tokens"]})
        self.assertEqual(self.c.hash("a"), self.c.hash("b"))

    def test_inspect_tells_the_health_of_streams_and_memories(self):
        for m in (s.AUTO, s.EVENTS):
            m.create(self.c, m.name)
            learned = m.learn(self.c, m.name, m.tokens(3000))
            seen = self.c.get(m.name, "inspect")
            self.fields(seen, {"version", "tokens", "bits_per_token", "calibration_error",
                               "nonfinite", "heads"})
            self.assertEqual((seen["version"], seen["tokens"], seen["nonfinite"]), (1, 3000, 0))
            self.fields(seen["bits_per_token"], {"all", "last_1k", "last_10k", "last_100k"})
            self.assertAlmostEqual(seen["bits_per_token"]["all"], learned["surprise"]["mean"],
                                   places=6)
            self.assertTrue(0 <= seen["calibration_error"] < 0.5)
            heads = seen["heads"]
            self.fields(heads, {"name", "rows", "used", "replaced", "weight"})
            self.assertEqual({len(v) for v in heads.values()}, {len(heads["name"])})
            self.assertGreater(sum(heads["used"]), 100)
        s.GATED.create(self.c, "m")
        s.GATED.learn(self.c, "m", s.GATED.tokens(20))
        heads = self.c.get("m", "inspect")["heads"]
        self.fields(heads, {"spectrum", "norm", "residual_before", "residual_after",
                            "effective_rank", "log_g_sum", "nonfinite", "capacity_used",
                            "covariance_condition"})
        data = s.st_read(self.c.call("GET", "/v1/sessions/m/tensors/S").body)[0]["S"][2]
        state = s.array.array("f", data)
        for h in range(2):
            norm = math.sqrt(math.fsum(x * x for x in state[64 * h:64 * (h + 1)]))
            self.assertAlmostEqual(heads["norm"][h], norm, places=4)
            sigma = heads["spectrum"][str(h)]
            self.assertEqual(sigma, sorted(sigma, reverse=True))
            self.assertAlmostEqual(math.sqrt(math.fsum(x * x for x in sigma)), norm, places=4)
            self.assertLess(heads["residual_after"][h], heads["residual_before"][h])
            self.assertTrue(1 <= heads["effective_rank"][h] <= 8)
            self.assertAlmostEqual(heads["capacity_used"][h], heads["effective_rank"][h] / 8)
            self.assertIsNone(heads["covariance_condition"][h])

    def test_inspect_tells_recall_by_age_and_the_condition_of_keys(self):
        s.PROBED.create(self.c, "m")
        curve = self.c.get("m", "inspect")["recall_by_age"]
        self.assertEqual(curve, {"age": [], "probes": [], "error": [], "cosine": []})
        tokens = s.PROBED.tokens(300)
        s.PROBED.learn(self.c, "m", tokens)
        seen = self.c.get("m", "inspect")
        curve, heads = seen["recall_by_age"], seen["heads"]
        self.fields(curve, {"age", "probes", "error", "cosine"})
        self.assertEqual(curve["age"][:8], [2 ** i for i in range(8)])
        self.assertGreater(curve["error"][-1], curve["error"][0])
        self.fields(heads["recall"], {"0", "1"})
        for i, age in enumerate(curve["age"]):
            errors = [e for h in heads["recall"].values() for a, e in zip(h["age"], h["error"])
                      if age <= a < 2 * age]
            self.assertEqual(len(errors), curve["probes"][i])
            self.assertAlmostEqual(math.fsum(errors) / len(errors), curve["error"][i])
        for i, v in enumerate(tokens[-1]["values"]):
            h = heads["recall"][str(i)]
            self.assertEqual((h["age"][:2], h["age"]), ([1, 2], sorted(h["age"])))
            self.assertEqual(len(h["cosine"]), len(h["age"]))
            norm = math.sqrt(math.fsum(x * x for x in v))
            self.assertAlmostEqual(h["error"][0], heads["residual_after"][i] / norm, places=5)
        self.assertTrue(all(1 < x < 1e7 for x in heads["covariance_condition"]))
        for key, value in (("probes", 65), ("probes", 0.5), ("covariance", 1)):
            got = self.c.call("POST", "/v1/sessions", {"id": "x", "model": "associative",
                                                       "config": {key: value}})
            self.assertEqual((got.status, got.json["error"]["param"]), (422, f"config.{key}"))

    def test_tensors_are_listed_fetched_and_drawn(self):
        s.AUTO.create(self.c, "a")
        s.GATED.create(self.c, "m")
        self.c.post("a", "learn", s.text(3000), type="text/plain")
        s.GATED.learn(self.c, "m", s.GATED.tokens(20))
        for name in "am":
            listed = self.c.get(name, "tensors")["data"]
            self.assertTrue(listed)
            for t in listed:
                self.fields(t, {"name", "dtype", "shape", "bytes"})
                r = self.c.call("GET", f"/v1/sessions/{name}/tensors/{t['name']}")
                got, _ = s.st_read(r.body)
                self.assertEqual([(k, v[0], v[1], len(v[2])) for k, v in got.items()],
                                 [(t["name"], t["dtype"], t["shape"], t["bytes"])])
        png = self.c.call("GET", "/v1/sessions/m/tensors/S", headers={"Accept": "image/png"})
        self.assertEqual(png.headers["Content-Type"], "image/png")
        self.assertTrue(png.body.startswith(b"\x89PNG\r\n\x1a\n"))
        self.assertEqual(self.refused(self.c.call("GET", "/v1/sessions/a/tensors/none"), 404)
                         ["reason"], "tensor_not_found")

    def test_snapshots_are_kept_listed_fetched_restored_and_dropped(self):
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", b"first", type="text/plain")
        before = self.c.hash("a")
        r = self.c.call("POST", "/v1/sessions/a/snapshots", {"name": "one"})
        self.assertEqual(r.status, 201, r)
        self.fields(r.json, {"name", "version", "tokens_seen", "hash", "bytes", "created_at"})
        self.assertEqual((r.json["hash"], r.json["version"], r.json["tokens_seen"]), (before, 1, 5))
        e = self.refused(self.c.call("POST", "/v1/sessions/a/snapshots", {"name": "one"}), 409)
        self.assertEqual(e["type"], "conflict_error")
        self.c.post("a", "learn", b"second", type="text/plain")
        for n in ("two", "three"):
            self.c.post("a", "snapshots", {"name": n})
        page = self.c.get("a", "snapshots", limit=2)
        self.fields(page, {"data", "has_more", "last_id"})
        self.assertEqual([x["name"] for x in page["data"]], ["one", "three"])
        rest = self.c.get("a", "snapshots", after=page["last_id"])
        self.assertEqual(([x["name"] for x in rest["data"]], rest["has_more"]), (["two"], False))
        file = self.c.call("GET", "/v1/sessions/a/snapshots/one")
        self.assertEqual(s.st_read(file.body)[1]["hash"], before)
        restored = self.c.post("a", "snapshots/one/restore")
        self.assertEqual((restored["hash"], restored["tokens_seen"]), (before, 5))
        self.assertEqual(restored["version"], 3)
        self.c.ok("DELETE", "/v1/sessions/a/snapshots/one")
        for method, path in (("GET", "one"), ("DELETE", "one"), ("POST", "one/restore")):
            r = self.c.call(method, f"/v1/sessions/a/snapshots/{path}")
            self.assertEqual(self.refused(r, 404)["reason"], "snapshot_not_found")
        self.assertEqual(self.c.hash("a"), before)

    def test_a_session_starts_from_another_or_from_its_snapshot(self):
        s.AUTO.create(self.c, "a")
        self.c.post("a", "learn", b"first", type="text/plain")
        first = self.c.hash("a")
        self.c.post("a", "snapshots", {"name": "one"})
        self.c.post("a", "learn", b"second", type="text/plain")
        second = self.c.hash("a")
        b = self.c.ok("POST", "/v1/sessions", {"id": "b", "from": {"session": "a"}})
        c = self.c.ok("POST", "/v1/sessions", {"id": "c", "from": {"session": "a",
                                                                   "snapshot": "one"}})
        self.assertEqual((self.c.hash("b"), self.c.hash("c")), (second, first))
        self.assertEqual((b["version"], c["version"]), (1, 1))
        self.assertEqual((b["tokens_seen"], c["tokens_seen"]), (11, 5))
        self.assertEqual(b["parent"], {"id": "a", "version": 2, "hash": second})
        self.assertEqual(c["parent"], {"id": "a", "version": 1, "hash": first})
        r = self.c.call("POST", "/v1/sessions/a/fork", {"id": "d"})
        self.assertEqual((r.status, r.headers["Location"]), (201, "/v1/sessions/d"))
        self.fields(r.json, FACTS, {"hash"})
        self.assertEqual(r.json["parent"], {"id": "a", "version": 2, "hash": second})
        self.assertNotIn(self.c.post("a", "fork", {})["id"], "abcd")
        self.refused(self.c.call("POST", "/v1/sessions/a/fork", {"id": "d"}), 409)
        self.refused(self.c.call("POST", "/v1/sessions", {"from": {"session": "none"}}), 404)
        self.refused(self.c.call("POST", "/v1/sessions", {"from": {"session": "a", "snapshot": "x"}}),
                     404)
        self.refused(self.c.call("POST", "/v1/sessions", {"from": {"session": "a"}, "config": {}}),
                     422)

    def test_export_import_and_checkpoint_answer_as_documented(self):
        for m in (s.AUTO, s.EVENTS, s.DELTA, s.GATED):
            a, b = "a-" + m.name.split()[0], "b-" + m.name.split()[0]
            m.create(self.c, a)
            m.create(self.c, b)
            m.learn(self.c, a, m.tokens(30))
            r = self.c.call("GET", f"/v1/sessions/{a}/export")
            self.assertEqual(r.headers["Content-Type"], "application/vnd.safetensors")
            tensors, meta = s.st_read(r.body)
            self.fields(meta, {"format", "format_version", "model", "config", "config_hash",
                               "tokens_seen", "hash", "file_hash", "cpu_level", "created_at"})
            self.assertEqual((meta["format"], meta["format_version"]), ("fastweight", "1"))
            self.assertEqual(json.loads(meta["config"]), self.c.facts(a)["config"])
            got = self.c.ok("PUT", f"/v1/sessions/{b}/import", r.body,
                            type="application/vnd.safetensors")
            self.fields(got, FACTS | {"hash"}, {"warning", "warnings", "cpu_level"})
            self.assertEqual((got["hash"], got["tokens_seen"], got["version"]),
                             (meta["hash"], 30, 1))
            self.refused(self.c.call("PUT", "/v1/sessions/none/import", r.body,
                                     type="application/vnd.safetensors"), 404)
            self.assertEqual(self.c.post(b, "checkpoint"), {"version": 1, "durable_version": 1})
            if m.kind == "associative":
                self.assertLessEqual({"S", "pending_k", "pending_e"}, set(tensors))

    def test_a_memory_learns_reports_residuals_reads_values_and_ranks(self):
        m = s.associative("delta", 1, 4, 3)
        m.create(self.c, "m")
        eye = [[1.0, 0, 0, 0], [0, 1.0, 0, 0]]
        vals = [[3.0, 4.0, 0], [0, 0, 2.0]]
        r = self.c.post("m", "learn", {"keys": eye, "values": vals, "queries": [eye[0], eye[0]]},
                        surprise="tokens")
        self.assertEqual(r["residual"], {"mean": 3.5, "pairs": [[5.0], [2.0]]})
        self.assertEqual(r["values"], [[vals[0]], [vals[0]]])
        self.assertNotIn("surprise", r)
        got = self.c.post("m", "recall", {"queries": [eye[0], eye[1]], "candidates": vals,
                                          "top_candidates": 1})
        self.assertEqual(got["values"], [[vals[0]], [vals[1]]])
        self.assertEqual([x[0]["index"] for x in got["ranked"]], [0, 1])
        self.assertAlmostEqual(got["ranked"][0][0]["cosine"], 1.0, places=6)
        scored = self.c.post("m", "score", {"keys": eye, "values": vals}, surprise="tokens")
        self.assertEqual(scored["residual"]["pairs"], [[0.0], [0.0]])
        body = s.st_write({"keys": ("F32", [2, 1, 4], s.floats(sum(eye, []))),
                           "values": ("F32", [2, 1, 3], s.floats(sum(vals, [])))})
        self.assertEqual(self.c.post("m", "score", body, type="application/vnd.safetensors")
                         ["residual"]["mean"], 0.0)

    def test_an_etag_names_the_incarnation_and_the_version_and_if_match_holds_to_it(self):
        s.DELTA.create(self.c, "m")

        def tag():
            return self.c.call("GET", "/v1/sessions/m").headers["ETag"]

        def learn(match):
            body, type = s.DELTA.body(s.DELTA.tokens(1))
            return self.c.call("POST", "/v1/sessions/m/learn", body, type=type,
                               headers={"If-Match": match})
        first = tag()
        self.assertRegex(first, r'^"\w+-0"$')
        r = learn(first)
        self.assertEqual(r.status, 200, r)
        self.assertEqual(r.headers["ETag"], tag())
        self.assertRegex(tag(), r'^"\w+-1"$')
        self.refused(learn(first), 412)
        self.assertEqual(self.c.facts("m")["version"], 1)
        old = tag()
        self.c.ok("DELETE", "/v1/sessions/m")
        s.DELTA.create(self.c, "m")
        self.assertEqual(learn(tag()).status, 200)
        self.refused(learn(old), 412)  # same version, another incarnation
        self.refused(self.c.call("POST", "/v1/sessions/m/checkpoint", headers={"If-Match": first}),
                     412, 422)
        for path in ("/v1/sessions/m", "/v1/sessions/m?hash=true"):
            self.refused(self.c.call("GET", path, headers={"If-Match": first}), 412)
            self.assertEqual(self.c.call("GET", path, headers={"If-Match": tag()}).status, 200)

    def test_unknown_fields_and_parameters_are_refused_by_name(self):
        s.AUTO.create(self.c, "a")
        for method, path, body in (
                ("POST", "/v1/sessions", {"model": "bytes", "modle": 1}),
                ("POST", "/v1/sessions", {"model": "bytes", "config": {"prest": "log"}}),
                ("PATCH", "/v1/sessions/a", {"labels": {}, "label": {}}),
                ("POST", "/v1/sessions/a/learn", {"text": "x", "tect": "y"}),
                ("POST", "/v1/sessions/a/score", {"text": "x", "tect": "y"}),
                ("POST", "/v1/sessions/a/predict", {"ful": True}),
                ("POST", "/v1/sessions/a/generate", {"max_tokens": 1, "sed": 1}),
                ("POST", "/v1/sessions/a/fork", {"name": "b"}),
                ("POST", "/v1/sessions/a/snapshots", {"name": "x", "id": "y"})):
            self.assertTrue(self.refused(self.c.call(method, path, body), 422)["param"], path)
        for method, path, body in (
                ("GET", "/v1/sessions", None), ("GET", "/v1/sessions/a", None),
                ("GET", "/v1/models", None), ("POST", "/v1/sessions/a/learn", {"text": "x"}),
                ("POST", "/v1/sessions/a/score", {"text": "x"}),
                ("POST", "/v1/sessions/a/predict", {}), ("GET", "/v1/sessions/a/inspect", None),
                ("GET", "/v1/sessions/a/export", None), ("POST", "/v1/sessions/a/fork", {}),
                ("POST", "/v1/sessions/a/checkpoint", None), ("DELETE", "/v1/sessions/a", None)):
            self.assertEqual(self.refused(self.c.call(method, path, body, hsah="true"), 422)
                             ["param"], "hsah", path)
        for q in ({"durability": "maybe"}, {"surprise": "all"}, {"hash": "1"}, {"adapt": "true"}):
            r = self.c.call("POST", "/v1/sessions/a/learn", {"text": "x"}, **q)
            self.assertEqual(self.refused(r, 422)["param"], list(q)[0])
        self.assertEqual(self.c.facts("a")["version"], 0)

    def test_wrong_methods_get_405_with_allow_and_unknown_paths_404(self):
        s.AUTO.create(self.c, "a")
        for path, allowed in (("/healthz", "GET"), ("/metrics", "GET"), ("/v1/models", "GET"),
                              ("/v1/sessions", "GET POST"), ("/v1/sessions/a", "GET PATCH DELETE"),
                              ("/v1/sessions/a/learn", "POST"), ("/v1/sessions/a/import", "PUT"),
                              ("/v1/sessions/a/export", "GET"),
                              ("/v1/sessions/a/snapshots", "GET POST"),
                              ("/v1/sessions/a/snapshots/x", "GET DELETE"),
                              ("/v1/sessions/a/tensors/x", "GET")):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                if method in allowed.split():
                    continue
                r = self.c.call(method, path, {} if method != "GET" else None)
                self.refused(r, 405)
                self.assertLessEqual(set(allowed.split()),
                                     set(re.split(r",\s*", r.headers["Allow"])), path)
        for path in ("/", "/v1", "/v1/", "/v2/sessions", "/v1/session", "/healthz/x",
                     "/v1/sessions/a/unlearn", "/v1/sessions/a/learn/x", "//v1/sessions"):
            self.refused(self.c.call("GET", path), 404)

    def test_content_types_that_are_not_taken_get_415(self):
        s.AUTO.create(self.c, "a")
        s.EVENTS.create(self.c, "e")
        s.DELTA.create(self.c, "m")
        for path, body, type in (
                ("a/learn", b"x", "image/png"), ("a/learn", b"x", None), ("a/learn", b"x", "text"),
                ("e/learn", b"xx", "text/plain"), ("m/learn", b"xx", "text/plain"),
                ("m/learn", b"xx", "application/octet-stream"),
                ("a/predict", b"{}", "text/plain"), ("a/fork", b"{}", "text/plain"),
                ("a/generate", b'{"max_tokens":1}', "application/octet-stream")):
            r = self.c.call("POST", f"/v1/sessions/{path}", body, type=type)
            self.assertEqual(self.refused(r, 415)["type"], "media_type_error", path)
        self.refused(self.c.call("PUT", "/v1/sessions/a/import", b"{}", type="application/json"),
                     415)


if __name__ == "__main__":
    fw.main()
