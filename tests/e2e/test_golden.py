#!/usr/bin/python3
"""The golden numbers through HTTP: a session of the case's config learns the case's body, with
queries, and what it reads after each pair is what other people's code read."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import fw  # noqa: E402

CHECK = os.path.join(fw.BUILD, "tests/golden_check")
CASES = os.path.join(fw.TESTS, "golden")


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def part_of(case, part):
    return {name: rows[part] for name, rows in case["body"].items()}


class Golden(fw.Case):
    def cases(self, started):
        """One case of each rule, map, form and variant; `started`: also from a state."""
        if not os.path.exists(CHECK):
            self.skipTest("no golden_check here")
        lines = subprocess.run([CHECK, "--requests", CASES], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.splitlines()
        chosen = {}
        for case in map(json.loads, lines):
            key = tuple(case["config"].get(k) for k in ("rule", "feature_map", "form", "solver",
                                                          "variant", "depth"))
            if started or not case["started"]:
                chosen.setdefault(key, case)
        self.assertGreater(len(chosen), 15)
        return chosen.values()

    def test_one_case_of_each_rule_gives_its_numbers_over_http(self):
        c = self.daemon().client()
        for case in self.cases(started=False):
            with self.subTest(case["name"]):
                c.create(case["name"], "associative", case["config"])
                n = len(case["body"]["keys"]) // 2
                got = []
                for part in (slice(0, n), slice(n, None)):  # two learns, one stream
                    reply = c.post(case["name"], "learn", part_of(case, part))
                    got += flat(reply["values"])
                want = flat(case["out"])
                self.assertEqual(len(got), len(want))
                worst = max(abs(a - b) for a, b in zip(got, want))
                self.assertLessEqual(worst, case["tolerance"])

    def test_every_rule_keeps_its_bytes_through_cuts_forks_snapshots_exports_and_kill(self):
        d = self.daemon()
        c = d.client()
        cases = list(self.cases(started=True))
        for case in cases:
            x = case["name"]
            c.create(x, "associative", case["config"])
            c.post(x, "learn", case["body"])
            c.create(x + ".cut", "associative", case["config"])
            c.post(x + ".cut", "learn", part_of(case, slice(0, 3)))
            c.post(x + ".cut", "snapshots", {"name": "three"})
            c.post(x + ".cut", "learn", part_of(case, slice(3, None)))
            c.post(x + ".cut", "snapshots/three/restore")
            c.post(x + ".cut", "learn", part_of(case, slice(3, 4)))
            c.post(x + ".cut", "fork", {"id": x + ".fork"})
        want = {case["name"]: c.hash(case["name"]) for case in cases}
        d.restart(hard=True)
        c = d.client()
        for case in cases:
            x = case["name"]
            with self.subTest(x):
                self.assertEqual(c.hash(x), want[x])
                file = c.export(x + ".cut")
                c.create(x + ".import", "associative", case["config"])
                c.ok("PUT", f"/v1/sessions/{x}.import/import", file,
                     type="application/vnd.safetensors")
                for copy in (".cut", ".fork", ".import"):
                    c.post(x + copy, "learn", part_of(case, slice(4, None)))
                    self.assertEqual(c.hash(x + copy), want[x], copy)
                c.get(x, "inspect")


if __name__ == "__main__":
    fw.main()
