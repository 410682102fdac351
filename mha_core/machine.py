"""What times are a property of: the device, its threads, PyTorch's version."""

from __future__ import annotations

import platform
from dataclasses import dataclass

import torch

__all__ = ["Machine", "devices", "machine", "wait"]


@dataclass(frozen=True)
class Machine:
    """What the times are a property of."""

    device: str
    threads: int
    torch: str
    dtype: str


def devices() -> tuple[str, ...]:
    """ "cpu", and "cuda" where there is one."""
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


def machine(device: str = "cpu", dtype: torch.dtype = torch.float32) -> Machine:
    """The device's own name, the threads PyTorch uses on the CPU, PyTorch's version and the numbers' type."""
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return Machine(name, torch.get_num_threads(), torch.__version__, str(dtype).removeprefix("torch."))


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def wait(device: str) -> None:
    """A GPU works on while Python goes on: a time is one only when it has finished."""
    if device == "cuda":
        torch.cuda.synchronize()
