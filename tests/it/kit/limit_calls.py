"""Random calls of weir's own scripts. The times are arguments, so two servers must answer alike."""

from kit.resp import encode
from test_limit_scripts import source

CHANNEL = "places"
SECOND_US = 1_000_000
PENALTY = "p200000:900000"


class LimitCalls:
    """Calls on a few keys. Some keys hold data that is not weir's. The times are arguments, and may
    step back.
    """

    def __init__(self, random, began_us):
        self.random = random
        self.now_us = began_us
        self.keys = [f"{name}{i}" for name in "fgwsh" for i in range(2)] + ["text", "list"]

    def moment(self):
        steps = [0, 1, 1000, 50_000, SECOND_US, 7 * SECOND_US, 100 * SECOND_US, -SECOND_US, -500 * SECOND_US]
        self.now_us += self.random.choice(steps)
        return str(self.now_us)

    def how(self, *more):
        return self.random.choice(["0", "0", "0", "1"]) + self.random.choice(["", "", "", "f", "a", "x3", *more])

    def counts(self, keys):
        return [str(self.random.randint(1, 4)) for _ in keys] if self.random.random() < 0.3 else []

    def some_keys(self, first):
        keys = [k for k in self.keys if k[0] == first or k in ("text", "list")]
        return self.random.sample(keys, self.random.randint(1, 2))

    def funnel(self):
        keys, rates = self.some_keys("f"), self.random.randint(1, 3)
        words = ["0", self.moment(), self.how(PENALTY), "f", str(rates)]
        for _ in range(rates):
            interval = self.random.choice([200, 1000, 20_000]) * SECOND_US
            burst = interval * self.random.randint(1, 20)
            words += [str(interval), str(interval * self.random.randint(1, 2)), str(burst), str(burst)]
        return "funnel", keys, [*words, *self.counts(keys)]

    def warm(self):
        keys, interval = self.some_keys("g"), self.random.choice([1000, 20_000]) * SECOND_US
        words = ["0", self.moment(), self.how(), str(interval), str(interval), str(9 * interval), str(30 * interval)]
        return "warm", keys, [*words, *self.counts(keys)]

    def ban(self):
        key = self.random.choice([k for k in self.keys if k[0] in "fwst"])
        letter = {"f": "f", "w": "w", "s": "z"}.get(key[0], "f")
        words = [self.random.choice(["ban", "unban"]), str(ord(letter)), "300000", ""]
        return "ban", [key], ["0", self.moment(), "0", *words]

    def windows(self, name, first):
        keys, rates = self.some_keys(first), self.random.randint(1, 2)
        how = self.how(PENALTY) + ("s" if name == "fixed" and self.random.random() < 0.2 else "")
        words = ["0", self.moment(), how, str(self.random.choice([1, 1, 2, -1])), str(rates)]
        for _ in range(rates):
            words += [str(self.random.randint(1, 9)), str(self.random.choice([100, 400, 86_400]) * SECOND_US)]
        return name, keys, [*words, *self.counts(keys)]

    def holders(self):
        keys = self.some_keys("h")
        word = self.random.choice(["acquire", "acquire", "acquire", "renew", "release"])
        words = ["0", self.moment(), self.random.choice("0001"), word, str(self.random.randint(0, 3))]
        words += [str(self.random.choice([100_000, 3_333_333])), self.random.choice(["", CHANNEL])]
        return "holders", keys, [*words, *(self.random.choice("abcde") for _ in keys)]

    def renew(self):
        letter = self.random.choice("fwz")
        return "renew", [self.random.choice(self.keys)], ["0", self.moment(), "0", "", str(ord(letter)), "", ""]

    def call(self):
        kind = self.random.choice(["funnel", "fixed", "sliding", "approx", "warm", "holders", "renew", "ban"])
        if kind in ("fixed", "sliding", "approx"):
            name, keys, words = self.windows(kind, "s" if kind == "sliding" else "w")
        else:
            name, keys, words = getattr(self, kind)()
        return encode("EVAL", source(name), len(keys), *keys, *words)

    def steps(self, n):
        steps = [("open", 0), ("open", 1), ("send", 1, encode("SUBSCRIBE", CHANNEL))]
        steps.append(("send", 0, encode("SET", "text", "none of yours") + encode("RPUSH", "list", "nor", "this")))
        for _ in range(n):
            steps.append(("send", 0, self.call()))
        return steps
