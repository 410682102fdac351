"""Our trace and our forward beside nn.MultiheadAttention, each round all three in turn.

The ratio is formed round by round, so that what slows the whole machine slows both sides of it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from mha_core import AttentionTrace, MultiHeadAttention

AIMS = {"trace": 1.3, "forward": 1.1}
"""At most so many times nn.MultiheadAttention, median of the rounds."""

SIZES = ((512, 512, 8, 1), (16, 64, 4, 20))
"""n, d_model, h, and how often each is called in a round."""

ROUNDS = 150
SEQUENCES = 1


def main() -> None:
    """Print everything, in under a minute."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, float32, CPU, {platform.machine()}")
    print("theirs: nn.MultiheadAttention(need_weights=True, average_attn_weights=False)\n")
    for n, d_model, h, calls in SIZES:
        for training in (True, False):
            compare(n, d_model, h, calls, training)
    report_memory(*SIZES[0][:3])


def setting(n: int, d_model: int, h: int, training: bool) -> tuple[nn.MultiheadAttention, MultiHeadAttention, Tensor]:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(d_model, h, batch_first=True).train(training)
    return theirs, MultiHeadAttention.from_torch(theirs), torch.randn(SEQUENCES, n, d_model)


def compare(n: int, d_model: int, h: int, calls: int, training: bool) -> None:
    """One table: the times of theirs, our forward and our trace, and the ratios beside their aims."""
    theirs, ours, X = setting(n, d_model, h, training)
    contestants: dict[str, Callable[[], object]] = {
        "theirs": lambda: theirs(X, X, X, need_weights=True, average_attn_weights=False),
        "forward": lambda: ours(X),
        "trace": lambda: ours.trace(X),
    }
    with nullcontext() if training else torch.no_grad():
        milliseconds = interleaved(contestants, calls)

    mode = "train, gradients on" if training else "eval, no_grad (PyTorch's fused fast path)"
    print(f"n={n} d_model={d_model} h={h} batch={SEQUENCES}, {mode}: {ROUNDS} rounds of {calls}")
    print(f"  {'':8} {'median ms (p10 … p90)':28} ratio to theirs (p10 … p90)")
    for name, times in milliseconds.items():
        ratio = ""
        if name in AIMS:
            ratios = times / milliseconds["theirs"]
            ratio = f"{spread(ratios, 2)}  aim ≤ {AIMS[name]}: {'met' if np.median(ratios) <= AIMS[name] else 'MISSED'}"
        print(f"  {name:8} {spread(times, 3):28} {ratio}")
    print()


def interleaved(contestants: dict[str, Callable[[], object]], calls: int) -> dict[str, np.ndarray]:
    """Milliseconds a call, one number a round; who comes first changes from round to round."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    order = list(contestants)
    for number in range(-10, ROUNDS):  # the rounds below 0 warm up
        order = order[1:] + order[:1]
        for name in order:
            run, start = contestants[name], perf_counter()
            for _ in range(calls):
                run()
            if number >= 0:
                times[name].append((perf_counter() - start) * 1e3 / calls)
    return {name: np.array(rounds) for name, rounds in times.items()}


def spread(numbers: np.ndarray, decimals: int) -> str:
    low, middle, high = np.percentile(numbers, [10, 50, 90])
    return f"{middle:.{decimals}f} ({low:.{decimals}f} … {high:.{decimals}f})"


def report_memory(n: int, d_model: int, h: int) -> None:
    """What one call allocates, in float32 and without gradients."""
    theirs, ours, X = setting(n, d_model, h, training=False)
    print(f"memory at n={n} d_model={d_model} h={h}, eval, no_grad: what torch's CPU allocator handed out during one")
    print("call, less what was freed; X and the parameters were there before and do not count")
    print(f"  {'':24} {'peak MiB':>9} {'held MiB':>9}   held: at the end, the result still alive")

    def trace(keep: Iterable[str] | None = None) -> Callable[[], AttentionTrace]:
        return lambda: ours.trace(X, keep=keep)

    for name, call in {
        "theirs": lambda: theirs(X, X, X, need_weights=True, average_attn_weights=False),
        "forward": lambda: ours(X),
        "trace": trace(),
        'trace keep=("weights",)': trace(("weights",)),
    }.items():
        peak, held = memory(call)
        print(f"  {name:24} {peak / 2**20:9.2f} {held / 2**20:9.2f}")


def memory(call: Callable[[], object]) -> tuple[int, int]:
    """The largest running sum of allocated minus freed bytes during a call, and the sum at its end."""
    with torch.no_grad():
        call()  # what is only set up once does not count
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
            result = call()
    events = [event for event in recording.profiler.kineto_results.events() if event.name() == "[memory]"]
    running = np.cumsum([event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())])
    del result  # alive until here, so that what it holds was never counted as freed
    return int(running.max()), int(running[-1])
