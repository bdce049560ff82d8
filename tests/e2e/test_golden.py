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


class Golden(fw.Case):
    def cases(self):
        if not os.path.exists(CHECK):
            self.skipTest("no golden_check here")
        lines = subprocess.run([CHECK, "--requests", CASES], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.splitlines()
        return [json.loads(line) for line in lines]

    def test_one_case_of_each_rule_gives_its_numbers_over_http(self):
        c, seen = self.daemon().client(), set()
        for case in self.cases():
            key = (case["config"]["rule"], case["config"].get("feature_map"),
                   case["config"].get("form"))
            if key in seen:
                continue
            seen.add(key)
            with self.subTest(case["name"]):
                c.create(case["name"], "associative", case["config"])
                n = len(case["body"]["keys"]) // 2
                got = []
                for part in (slice(0, n), slice(n, None)):  # two learns, one stream
                    body = {k: v[part] for k, v in case["body"].items()}
                    got += flat(c.post(case["name"], "learn", body)["values"])
                want = flat(case["out"])
                self.assertEqual(len(got), len(want))
                worst = max(abs(a - b) for a, b in zip(got, want))
                self.assertLessEqual(worst, case["tolerance"])
        self.assertGreater(len(seen), 15)


if __name__ == "__main__":
    fw.main()
