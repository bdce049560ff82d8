#!/usr/bin/python3
"""Makes byte-lm's training text in a directory: books, reflowed books, logs, JSON lines, code.

    data.py DIRECTORY BOOKS...

BOOKS: public-domain English text. Code is what Debian's python3 (PSF licence) and, if installed, libtorch-dev (BSD)
put on this machine. The last 200,000 bytes of the books are held out. The same inputs give the same files.
"""
import glob, json, os, random, sys, textwrap

WORDS = ("cache index queue worker session stream block page shard volume token request reply batch segment "
         "node socket timer lease journal replica tenant bucket route filter probe sensor order invoice user "
         "account").split()
HOSTS = ["%s%d" % (n, i) for n in ("web", "db", "edge", "mail", "build") for i in range(1, 6)]
AGENTS = ["curl/8.5.0", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
          "python-requests/2.31", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15",
          "Go-http-client/2.0"]
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Clock:
    def __init__(self, r):
        self.r, self.s = r, r.randrange(300 * 86400)

    def next(self):
        self.s += int(self.r.expovariate(0.4))
        day, s = divmod(self.s, 86400)
        return day // 28 % 12, day % 28 + 1, "%02d:%02d:%02d" % (s // 3600, s // 60 % 60, s % 60)


def address(r):
    return ".".join(str(r.randrange(1, 255)) for _ in range(4))


def log_line(r, clock, kind, peers):
    month, day, at = clock.next()
    peer, w = r.choice(peers), r.choice(WORDS)
    if kind == "web":
        path = "/" + "/".join(r.sample(WORDS, r.randrange(1, 4))) + r.choice(["", "", "?page=%d" % r.randrange(40)])
        return '%s - - [%02d/%s/2025:%s +0000] "%s %s HTTP/1.1" %d %d "-" "%s"' % (
            peer, day, MONTHS[month], at, r.choices(["GET", "POST", "PUT"], [8, 2, 1])[0], path,
            r.choices([200, 304, 404, 500], [20, 4, 2, 1])[0], int(r.lognormvariate(7, 1.5)), r.choice(AGENTS))
    if kind == "system":
        pid, ports = r.randrange(300, 32000), (r.randrange(1024, 65535), r.randrange(1024, 65535))
        what = r.choice([
            "sshd[%d]: Accepted publickey for %s from %s port %d ssh2" % (pid, w, peer, ports[0]),
            "sshd[%d]: Failed password for invalid user %s from %s port %d ssh2" % (pid, w, peer, ports[1]),
            "systemd[1]: Started %s.service - the %s service." % (w, w),
            "systemd[1]: %s.service: Deactivated successfully." % w,
            "kernel: [%d.%06d] eth%d: link is %s" % (
                clock.s, r.randrange(10**6), r.randrange(2), r.choice(["up", "down"])),
            "cron[%d]: (root) CMD (/usr/lib/%s/run --all)" % (pid, w)])
        return "%s %2d %s %s %s" % (MONTHS[month], day, at, r.choice(HOSTS[:3]), what)
    return "2025-%02d-%02dT%s.%03dZ %s %s: %s" % (month + 1, day, at, r.randrange(1000),
        r.choices(["INFO", "WARN", "ERROR", "DEBUG"], [8, 2, 1, 3])[0], w, r.choice([
            "took %d ms for %d %ss" % (int(r.lognormvariate(3, 1)), r.randrange(1, 500), r.choice(WORDS)),
            "connection to %s:%d refused, retry %d" % (peer, r.choice([5432, 6379, 8080]), r.randrange(1, 6)),
            "id=%08x state=%s size=%d" % (r.getrandbits(32), r.choice(["open", "closed", "pending"]),
                                              r.randrange(10**5)),
            "%s %d opened" % (r.choice(WORDS), r.randrange(1000)), "shutting down: %s is empty" % r.choice(WORDS)]))


def logs(r, size):
    out, n = [], 0
    while n < size:
        clock, kind, peers = Clock(r), r.choice(["web", "system", "app"]), [address(r) for _ in range(12)]
        for _ in range(r.randrange(200, 800)):
            out.append(log_line(r, clock, kind, peers) + "\n")
            n += len(out[-1])
    return "".join(out)


def value(r, depth, like):
    simple = ["int", "float", "word", "name", "bool", "time", "id"]
    kind = r.choice(simple + (["object", "list"] if depth < 2 else []))
    return {"int": lambda: r.randrange(1000), "float": lambda: round(r.expovariate(0.05), 2),
            "word": lambda: r.choice(like), "name": lambda: " ".join(r.sample(like, 2)),
            "bool": lambda: r.random() < 0.5, "time": lambda: 1700000000 + r.randrange(10**8),
            "id": lambda: "%08x" % r.getrandbits(32),
            "object": lambda: {k: value(r, depth + 1, like) for k in r.sample(WORDS, r.randrange(1, 5))},
            "list": lambda: [value(r, 2, like) for _ in range(r.randrange(5))]}[kind]()


def json_lines(r, size):
    out, n = [], 0
    while n < size:  # a run of records of one shape, whose values vary
        state, like, indent = r.getrandbits(32), r.sample(WORDS, 8), r.choice([None, None, None, 2])
        for i in range(r.randrange(20, 300)):
            keys = random.Random(state)
            record = {"id": i, "event": r.choice(like[:4])}
            for k in keys.sample(WORDS, keys.randrange(2, 7)):
                mode = keys.random()
                record[k] = value(r if mode < 0.3 else random.Random(state + len(k) + r.randrange(3)), 0, like)
            out.append(json.dumps(record, indent=indent) + "\n")
            n += len(out[-1])
    return "".join(out)


def code(r, size):
    places = ("/usr/lib/python3.*/**/*.py", "/usr/include/python3.*/**/*.h", "/usr/include/torch/**/*.h",
              "/usr/include/ATen/core/**/*.h", "/usr/include/c10/**/*.h")
    names = sorted(f for g in places for f in glob.glob(g, recursive=True) if "/test" not in f)
    r.shuffle(names)
    out = b""
    for f in names:
        with open(f, "rb") as h:
            t = h.read()
        if len(out) < size and 500 < len(t) < 200000:
            out += t + b"\n"
    return out[:size]


def reflowed(r, books, size):
    paragraphs, out, n = books.split("\n"), [], 0
    at = r.randrange(len(paragraphs) // 2)
    while n < size:
        width = r.choice([64, 72, 72, 75, 80])
        for p in paragraphs[at:at + 400]:
            out.append(textwrap.fill(p, width) + "\n" if p.strip() else "\n")
            n += len(out[-1])
        at = (at + 400) % (len(paragraphs) - 400)
    return "".join(out)


def main():
    to, books = sys.argv[1], b""
    for f in sys.argv[2:]:
        with open(f, "rb") as h:
            books += h.read()
    train, held = books[:-300000], books[-200000:]
    text = train.decode("utf-8", "ignore")
    made = {"books.txt": train, "held-out.txt": held, "code.txt": code(random.Random(4), 5000000),
            "reflowed.txt": reflowed(random.Random(1), text, 4000000).encode(),
            "logs.txt": logs(random.Random(2), 3000000).encode(),
            "json.txt": json_lines(random.Random(3), 3000000).encode()}
    os.makedirs(to, exist_ok=True)
    for n, b in made.items():
        with open(os.path.join(to, n), "wb") as f:
            f.write(b)
        print(n, len(b))


if __name__ == "__main__":
    main()
