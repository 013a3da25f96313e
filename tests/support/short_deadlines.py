"""Settings of a service whose callers have very little time, with all other deadlines below."""

from counsel.service.settings import IN_ORDER, ServiceSettings


def within(request_seconds, **settings):
    """Return settings in which a request is late after so many seconds."""
    shares = [(number + 1) / len(IN_ORDER) for number in range(len(IN_ORDER))]
    deadlines = {name: request_seconds * x for name, x in zip(IN_ORDER, shares, strict=True)}
    return ServiceSettings(**deadlines, **settings)
