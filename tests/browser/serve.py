"""A Streamlit server and a Chromium for tests, benchmarks and screenshots."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip


def chromium_path() -> str | None:
    """Where Chromium is: $CHROMIUM, /usr/bin/chromium, or on the PATH."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium", path=f"/usr/bin:{os.environ.get('PATH', '')}")


def free_port() -> int:
    """A port on this machine that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def serve(script: str | Path = "app.py", port: int | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run an app from the project's root; yields its address and its process."""
    port = port or free_port()
    command = [
        sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port),
        "--server.address", "127.0.0.1", "--server.headless", "true", "--server.fileWatcherType", "none",
    ]  # fmt: skip
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_until_healthy(address, process)
        yield address, process
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_healthy(address: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"{address} did not answer within a minute")
