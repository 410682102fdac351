"""Long work that is fair to everybody: a queue, a limit of what runs at once, and leases.

Work is a generator: it yields points while it runs and returns its result. It runs in a thread of
its own and is closed at its next point when it is stopped, or when nobody asks for it any more.
Nothing here knows Streamlit.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Literal

from mha_core.errors import InputError

__all__ = ["LEASE", "SLOTS", "Job", "Jobs", "Status", "Work"]

SLOTS = 2  # what runs at once in the process: two trainings, or one measurement that wants to be alone
LEASE = 5.0  # seconds that work goes on after it was last asked for: a closed tab ends it
LONGEST_QUEUE = 64

Work = Callable[[], Generator[Any, None, Any]]
State = Literal["waiting", "running", "done", "stopped", "failed"]


@dataclass(frozen=True)
class Status:
    """Where a job stands.

    Attributes:
        state: "stopped" when it was stopped, or nobody asked for it during a lease.
        before: how many jobs wait before it, while it waits.
        points: what it has yielded.
        result: what it returned, once it is done.
        error: what it raised, once it failed.
    """

    state: State
    before: int = 0
    points: tuple[Any, ...] = ()
    result: Any = None
    error: Exception | None = None

    @property
    def live(self) -> bool:
        """Whether more will come."""
        return self.state in ("waiting", "running")


class Job:
    """One piece of work; made by :meth:`Jobs.start`."""

    def __init__(self, jobs: Jobs, work: Work, slots: int) -> None:
        self._jobs, self._work, self.slots = jobs, work, slots
        self._stop = threading.Event()
        self._asked = time.monotonic()
        self._status = Status("waiting")  # replaced whole, so that a reader never sees half of a change

    def status(self) -> Status:
        """Where it stands. Asking renews the lease."""
        self._asked = time.monotonic()
        return self._jobs._look(self)

    def stop(self) -> None:
        """End it at its next point; what it has yielded stays."""
        self._stop.set()
        self._jobs._pump()

    @property
    def _unwanted(self) -> bool:
        return self._stop.is_set() or time.monotonic() - self._asked > self._jobs.lease

    def _run(self) -> None:
        points: tuple[Any, ...] = ()
        try:
            running = self._work()
            while not self._unwanted:
                try:
                    points = (*points, next(running))
                except StopIteration as end:
                    self._status = Status("done", points=points, result=end.value)
                    return
                self._status = Status("running", points=points)
            running.close()
            self._status = Status("stopped", points=points)
        except InputError as error:  # something to tell, and no fault of the program
            self._status = Status("failed", points=points, error=error)
        except Exception as error:
            logging.getLogger(__name__).exception("a job failed")
            self._status = Status("failed", points=points, error=error)
        finally:
            self._jobs._finished(self)


class Jobs:
    """All long work of the process, first come, first served.

    Args:
        slots: how many slots run at once; a job takes one or more.
        lease: seconds.

    >>> def count():
    ...     yield from range(3)
    ...     return "counted"
    >>> job = Jobs().start(count)
    >>> while job.status().live:
    ...     time.sleep(0.01)
    >>> job.status().points, job.status().result
    ((0, 1, 2), 'counted')
    """

    def __init__(self, slots: int = SLOTS, lease: float = LEASE) -> None:
        self.slots, self.lease = slots, lease
        self._free = slots
        self._waiting: deque[Job] = deque()
        self._lock = threading.Lock()

    def start(self, work: Work, slots: int = 1) -> Job:
        """Run this, now or when its turn has come.

        Args:
            work: called in the job's thread; must not use what belongs to a session.
            slots: how many it takes; all of them to run alone.

        Raises:
            OverflowError: the queue is full.
        """
        job = Job(self, work, min(slots, self.slots))
        with self._lock:
            if len(self._waiting) >= LONGEST_QUEUE:
                raise OverflowError(f"{len(self._waiting)} jobs wait already; try again in a minute")
            self._waiting.append(job)
        self._pump()
        return job

    def _pump(self) -> None:
        """Drop who left the queue, and start who is first while there is room. Nobody overtakes."""
        with self._lock:
            for job in [job for job in self._waiting if job._unwanted]:
                self._waiting.remove(job)
                job._status = Status("stopped")
            while self._waiting and self._waiting[0].slots <= self._free:
                job = self._waiting.popleft()
                self._free -= job.slots
                job._status = Status("running")
                threading.Thread(target=job._run, name="job", daemon=True).start()

    def _finished(self, job: Job) -> None:
        with self._lock:
            self._free += job.slots
        self._pump()

    def _look(self, job: Job) -> Status:
        if job._status.state == "waiting":
            self._pump()
            with self._lock:
                if job in self._waiting:
                    return Status("waiting", before=self._waiting.index(job))
        return job._status
