import statistics


class Ratio:
    """How many times as long one thing takes as another, by the pairs of samples."""

    def __init__(self, slow, fast):
        slow, fast = (getattr(each, "samples", each) for each in (slow, fast))
        self.pairs = [a / b for a, b in zip(slow, fast)]
        several = self.pairs if len(self.pairs) > 1 else 2 * self.pairs
        self.low, self.median, self.high = statistics.quantiles(several, n=4)

    def __gt__(self, limit):
        return self.median > limit if self.tells(limit) else True

    def __lt__(self, limit):
        return self.median < limit if self.tells(limit) else True

    def tells(self, limit):
        """If quartiles can't decide, comparisons are True and `not_checked` says so."""
        sure = len(self.pairs) > 2 and not self.low <= limit <= self.high
        if not sure:
            spread = f"{len(self.pairs)} pairs, {self.low:.3g} to {self.high:.3g} times"
            not_checked(f"too slow or noisy here to tell from {limit} ({spread})")
        return sure
