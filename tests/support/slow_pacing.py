"""The pacing of a shared limit again, slow and obvious: every offer is kept, nothing is summed."""

FACTOR, ENOUGH, USUAL, SMOOTHING, PARTS = 0.9, 200, 10, 3, 24
SURE, LARGEST_SURPRISE, TRUST = 3, 10, 4


class SlowStretch:
    """One stretch of length 1: offers as (share of the stretch, bid, cost), and earlier stretches.

    ``earlier`` has (from where it was watched, its offers) for each stretch before, oldest first.
    """

    def __init__(self, pieces, earlier, opened=0.0):
        self.pieces, self.earlier, self.opened = pieces, earlier, opened
        self.offers, self.spent = [], 0.0
        self.strays, self.surprises = [], []  # of each earlier stretch
        for day, (first, offers) in enumerate(earlier):
            past = SlowStretch.__new__(SlowStretch)
            past.earlier, past.opened = earlier[:day], first
            past.strays, past.surprises = self.strays[:day], self.surprises[:day]
            self.strays.append(past.stray_of(offers))
            self.surprises.append(past.surprise_of(offers))

    def stray_of(self, offers):
        """How far the offers of this stretch were from when they usually come."""
        came, whole, total = 0.0, sum(c for *_, c in offers), 0.0
        rates = self.rates()
        for at, _, cost in offers:
            total += ((came + cost / 2.0) / whole - self.share(rates, at)) ** 2
            came += cost
        return 6.0 * total - 1.0

    def surprise_of(self, offers):
        """How far the cost of all offers of this stretch was from the usual one."""
        if not self.earlier:
            return 0.0
        mean = _between(self.rates(), self.opened, 1.0)
        variance = mean * self.mean_cost() + mean**2 / USUAL
        return min((sum(c for *_, c in offers) - mean) ** 2 / variance, LARGEST_SURPRISE) - 1.0

    def weights(self):
        """How much each earlier stretch counts: from 200 offers on, a tenth is forgotten."""
        weights = []
        for _ in self.earlier:
            remembered = sum(
                w * len(old) for w, (_, old) in zip(weights, self.earlier, strict=False)
            )
            if remembered >= ENOUGH:
                weights = [FACTOR * w for w in weights]
            weights.append(1.0)
        return weights

    def mean_cost(self):
        """The mean cost of earlier offers."""
        pairs = list(zip(self.weights(), self.earlier, strict=True))
        count = sum(w * len(offers) for w, (_, offers) in pairs)
        return sum(w * c for w, (_, offers) in pairs for *_, c in offers) / count

    def clumping(self):
        """How much people came in batches so far."""
        pairs = list(zip(self.weights(), self.earlier, strict=True))
        count = sum(w * len(offers) for w, (_, offers) in pairs)
        strayed = sum(w * s for w, s in zip(self.weights(), self.strays, strict=True))
        return min(max(strayed / count, 0.0), 1.0)

    def rates(self):
        """The cost that usually comes in each part; evenly in the first stretch."""
        if not self.earlier:
            return [1.0] * PARTS
        weighed = [
            (w, int(opened * PARTS) / PARTS, offers)  # its first part counts as watched
            for w, (opened, offers) in zip(self.weights(), self.earlier, strict=True)
        ]
        cost = sum(w * c for w, _, offers in weighed for *_, c in offers)
        mean = cost / sum(w * (1.0 - opened) * PARTS for w, opened, _ in weighed)
        alike = 1.0 - self.clumping()
        some = max(alike, 1e-9) * SMOOTHING * self.mean_cost() / mean
        rates = []
        for part in range(PARTS):
            here = sum(w * c for w, _, offers in weighed for at, _, c in offers if _in(at, part))
            seen = sum(w * _overlap(part, opened, 1.0) for w, opened, _ in weighed)
            rates.append((here + some * alike * mean) / (seen + some))
        return rates

    def share(self, rates, now):
        """The share of what usually comes in this stretch that comes until ``now``."""
        return _between(rates, self.opened, now) / _between(rates, self.opened, 1.0)

    def expected(self, now):
        """The cost of the offers expected after ``now``: of the whole less what has come."""
        came = sum(c for *_, c in self.offers)
        if not self.earlier:
            if len(self.offers) < 2:
                return 0.0
            watched = now - self.opened
            again = (1.0 + PARTS * watched) ** TRUST
            if watched > 0.0:
                again = min(again, (1.0 - now) / watched)
            return (came - came / len(self.offers)) * again
        rates, piece = self.rates(), self.mean_cost()
        mean, share = _between(rates, self.opened, 1.0), self.share(rates, now)
        days = sum(self.weights())  # the last part is always watched
        surprise = sum(w * s for w, s in zip(self.weights(), self.surprises, strict=True))
        whole = (mean * piece + mean**2 / USUAL) * (SURE + days + surprise) / (SURE + days)
        independent = share * (1.0 - share) * mean * piece
        one_batch = share * (1.0 - share) * mean**2
        clumping = self.clumping() if mean > piece else 0.0
        given_whole = (1.0 - clumping) * independent + clumping * one_batch
        if share == 0.0:
            weight = whole / mean / (piece + clumping * (mean - piece))
        else:
            weight = share * whole / (share**2 * whole + given_whole)
        return max(mean + weight * (came - share * mean) - came, 0.0)

    def chance(self, now, bid):
        """The probability with which a piece of cost 1 is said."""
        left = max(self.pieces - self.spent, 0.0)
        if left < 1.0:
            return 0.0
        expected = self.expected(now)
        if expected <= left:
            return 1.0
        bids = [(_two_digits(b), c) for _, b, c in self.offers]
        for w, (_, offers) in zip(self.weights(), self.earlier, strict=True):
            bids += [(_two_digits(b), w * c) for _, b, c in offers]
        total = sum(c for _, c in bids)

        def above(level, *, least):
            these = (c for b, c in bids if b > level or (least and b == level))
            return expected * sum(these) / total

        bid = _two_digits(bid)
        if above(bid, least=False) >= left:
            return 0.0
        price = max(b for b, _ in bids if above(b, least=True) >= left)
        if bid > price:
            return 1.0
        share = (left - above(price, least=False)) / expected * total
        return share / sum(c for b, c in bids if b == price)


def _in(at, part):
    return part <= at * PARTS < part + 1 or (at >= 1.0 and part == PARTS - 1)


def _between(rates, start, end):
    """The cost that usually comes between two moments."""
    return sum(rate * _overlap(part, start, end) for part, rate in enumerate(rates))


def _overlap(part, start, end):
    """The share of a part between two moments."""
    low, high = max(part / PARTS, start), min((part + 1) / PARTS, end)
    return max(high - low, 0.0) * PARTS


def _two_digits(bid):
    return float(f"{bid:.2g}")
