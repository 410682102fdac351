"""One thread, before torch is imported: the same numbers on every machine, and room for other processes."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
