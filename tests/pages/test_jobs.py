"""Long work: how much runs at once, who is next, and what ends it."""

import threading
import time

import pytest

from pages._ui.jobs import LONGEST_QUEUE, Jobs


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.005)


class Steps:
    """Work that yields when it is told to, and tells whether it was closed."""

    def __init__(self):
        self.go, self.begun, self.closed = threading.Event(), threading.Event(), threading.Event()

    def __call__(self):
        try:
            self.begun.set()
            yield "first"
            while not self.go.is_set():
                time.sleep(0.005)
                yield "more"
            return "result"
        finally:
            self.closed.set()


def test_points_come_while_it_runs_and_the_result_at_the_end():
    work = Steps()
    job = Jobs().start(work)
    until(lambda: job.status().points)
    assert job.status().state == "running" and job.status().result is None
    work.go.set()
    until(lambda: not job.status().live)
    assert job.status().state == "done" and job.status().result == "result"
    assert job.status().points[0] == "first"


def test_at_most_two_run_and_the_others_are_told_how_many_are_before_them():
    works = [Steps() for _ in range(4)]
    jobs = Jobs()
    running = [jobs.start(work) for work in works]
    until(lambda: works[0].begun.is_set() and works[1].begun.is_set())
    assert [job.status().state for job in running] == ["running", "running", "waiting", "waiting"]
    assert [job.status().before for job in running[2:]] == [0, 1]
    assert not works[2].begun.is_set()
    works[0].go.set()
    until(works[2].begun.is_set)
    assert running[3].status().before == 0 and not works[3].begun.is_set()
    for work in works:
        work.go.set()
    until(lambda: all(job.status().state == "done" for job in running))


def test_work_that_wants_to_be_alone_is_alone_and_is_not_overtaken():
    first, alone, later = Steps(), Steps(), Steps()
    jobs = Jobs()
    held = [jobs.start(first), jobs.start(alone, slots=2), jobs.start(later)]
    until(first.begun.is_set)
    assert [job.status().state for job in held] == ["running", "waiting", "waiting"]
    first.go.set()
    until(alone.begun.is_set)
    assert held[2].status().state == "waiting"
    alone.go.set()
    until(later.begun.is_set)
    later.go.set()
    until(lambda: not held[2].status().live)


def test_stopping_closes_the_work_and_keeps_its_points():
    work = Steps()
    job = Jobs().start(work)
    until(lambda: job.status().points)
    job.stop()
    until(work.closed.is_set)
    until(lambda: job.status().state == "stopped")
    assert job.status().points and job.status().result is None


def test_who_stops_in_the_queue_leaves_it():
    works = [Steps() for _ in range(3)]
    jobs = Jobs(slots=1)
    _first, second, third = (jobs.start(work) for work in works)
    second.stop()
    assert second.status().state == "stopped" and third.status().before == 0
    works[0].go.set()
    until(works[2].begun.is_set)
    assert not works[1].begun.is_set()
    third.stop()


def test_work_that_nobody_asks_for_ends_and_makes_room():
    forgotten, next_one = Steps(), Steps()
    jobs = Jobs(slots=1, lease=0.2)
    jobs.start(forgotten)
    until(forgotten.begun.is_set)
    waiting = jobs.start(next_one)
    until(lambda: waiting.status().state == "running")
    assert forgotten.closed.is_set()
    next_one.go.set()
    until(lambda: not waiting.status().live)


def test_who_closes_the_tab_while_waiting_is_not_waited_for():
    works = [Steps() for _ in range(3)]
    jobs = Jobs(slots=1, lease=0.3)
    first = jobs.start(works[0])
    jobs.start(works[1])  # nobody asks for it
    third = jobs.start(works[2])
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        first.status(), third.status()
        time.sleep(0.02)
    assert third.status().before == 0
    works[0].go.set()
    until(lambda: third.status().state == "running")
    assert not works[1].begun.is_set()
    third.stop()


def test_an_error_is_kept_and_the_next_one_runs():
    def wrong():
        yield 1
        raise ZeroDivisionError("ours")

    jobs = Jobs(slots=1)
    job, work = jobs.start(wrong), Steps()
    after = jobs.start(work)
    until(lambda: job.status().state == "failed")
    assert job.status().points == (1,) and isinstance(job.status().error, ZeroDivisionError)
    until(work.begun.is_set)
    after.stop()


def test_the_queue_is_bounded():
    jobs = Jobs(slots=1)
    works = [Steps() for _ in range(LONGEST_QUEUE + 1)]
    held = [jobs.start(work) for work in works]
    with pytest.raises(OverflowError, match="try again"):
        jobs.start(Steps())
    for job in held:
        job.stop()
