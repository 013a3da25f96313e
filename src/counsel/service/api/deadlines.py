"""A deadline for every request: a late request is answered with 503, and can be sent again.

Advice, outcomes and the start and end of episodes have seconds; lists, summaries, exports and
changes, which nobody waits for at a bedside, have more. An answer that has begun is not cut short:
its caller is watched by the edge instead. All requests of a kind have one timer: requests that
began first are late first, and a timer for each would cost more than the deadline itself.
"""

import asyncio
import re
from collections import OrderedDict
from weakref import WeakKeyDictionary

from starlette.types import Scope

from counsel.service.settings import ServiceSettings

PROMPT = re.compile(
    r"/v1/(episodes/[^/]+/(advice|end|reported)|outcomes|advisers/[^/]+/episodes|play(/.*)?)"
    r"|/cds-services/.+"
)
"""Paths whose POST requests are answered at once."""


class Deadline:
    """The deadline of the request that the current task answers."""

    __slots__ = ("_cancelling", "_clock", "_expired", "_task", "at", "seconds")

    def __init__(self, clock: "_Clock", task: "asyncio.Task[object]") -> None:
        self._clock, self._task, self.seconds = clock, task, clock.seconds
        self._cancelling, self._expired = task.cancelling(), False
        self.at = clock.loop.time() + clock.seconds

    def lift(self) -> None:
        """Let the task take as long as it does from here on; lifting it again changes nothing."""
        self._clock.waiting.pop(self, None)

    def expire(self) -> None:
        """Stop the task."""
        self._expired = True
        self._task.cancel()

    def has_passed(self) -> bool:
        """Whether the task was stopped for this reason alone; it may then go on."""
        return self._expired and self._task.uncancel() <= self._cancelling


class Deadlines:
    """The deadlines of all requests of an app."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._prompt, self._reading = settings.request_seconds, settings.reading_seconds
        self._clocks: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[_Clock, _Clock]]
        self._clocks = WeakKeyDictionary()

    def begin(self, scope: Scope) -> Deadline:
        """Return the deadline of a request, which the current task answers."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request is answered by a task")
        loop = task.get_loop()
        clocks = self._clocks.get(loop)
        if clocks is None:
            clocks = self._clocks[loop] = (_Clock(loop, self._prompt), _Clock(loop, self._reading))
        is_prompt = scope["method"] == "POST" and PROMPT.fullmatch(scope["path"]) is not None
        return clocks[0 if is_prompt else 1].begin(task)


class _Clock:
    """The timer of all requests that may take equally long: the first in ``waiting`` is next."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop, self.seconds = loop, seconds
        self.waiting: OrderedDict[Deadline, None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, task: "asyncio.Task[object]") -> Deadline:
        deadline = Deadline(self, task)
        self.waiting[deadline] = None
        if self._timer is None:
            self._timer = self.loop.call_at(deadline.at, self._ring)
        return deadline

    def _ring(self) -> None:
        """Stop the tasks that are late, and come again when the next one may be."""
        now, self._timer = self.loop.time(), None
        while self.waiting:
            deadline = next(iter(self.waiting))
            if deadline.at > now:
                self._timer = self.loop.call_at(deadline.at, self._ring)
                return
            del self.waiting[deadline]
            deadline.expire()
