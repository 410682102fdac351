"""``python -m tests.bench core`` or ``app``: figures for a person to read. Nothing asserts a time."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tests.bench import app, core

BENCHES: dict[str, Callable[[argparse.Namespace], None]] = {
    "core": lambda options: core.main(),
    "app": lambda options: app.main(options.repeats),
}


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.bench", description=__doc__)
    parser.add_argument("bench", choices=BENCHES)
    parser.add_argument("--repeats", type=int, default=app.REPEATS, help="rounds of app (%(default)s)")
    options = parser.parse_args()
    BENCHES[options.bench](options)


main()
