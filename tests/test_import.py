"""Imports run downward only: app, pages, pages/_ui, mha_core.figures, mha_core."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_importing_mha_core_loads_neither_streamlit_nor_plotly_nor_pandas() -> None:
    script = "import sys, mha_core; print(*({'streamlit', 'plotly', 'pandas'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def imported(source: str, package: str = "") -> set[str]:
    """Every module a source imports, and every name from it, dotted: ``from a import b`` is a and a.b."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return names


def offenders(paths: Callable[[], list[Path]], forbidden: set[str]) -> list[str]:
    """Each file of these that imports one of the forbidden modules, or anything inside it."""
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths()
        for name in sorted(imported(path.read_text("utf-8"), ".".join(path.relative_to(ROOT).parent.parts)))
        if any(name == module or name.startswith(f"{module}.") for module in forbidden)
    ]


def core() -> list[Path]:
    return sorted((ROOT / "mha_core").rglob("*.py"))


def core_without_figures() -> list[Path]:
    return [path for path in core() if "figures" not in path.relative_to(ROOT).parts]


def page_files() -> list[Path]:
    return sorted((ROOT / "pages").glob("*.py"))


def ui() -> list[Path]:
    return sorted((ROOT / "pages" / "_ui").rglob("*.py"))


PAGE_MODULES = {f"pages.{path.stem}" for path in page_files() if path.stem != "__init__"}


@pytest.mark.parametrize(
    ("paths", "forbidden"),
    [
        (core, {"streamlit", "pages", "app", "tests"}),
        (core_without_figures, {"plotly", "mha_core.figures"}),
        (page_files, {"torch", "plotly", "app", "tests"}),
        (ui, {"app", "tests"} | PAGE_MODULES),
    ],
    ids=["mha_core", "mha_core without figures", "pages", "pages/_ui"],
)
def test_imports_run_downward(paths: Callable[[], list[Path]], forbidden: set[str]) -> None:
    assert offenders(paths, forbidden) == []


def test_the_core_is_found() -> None:
    assert ROOT / "mha_core" / "attention.py" in core()


def test_imports_are_read_in_every_form() -> None:
    source = "import a.b\nfrom c import d\ndef f():\n    from . import e\n    from .g import h\n"
    assert imported(source, "pages._ui") == {
        "a.b",
        "c",
        "c.d",
        "pages._ui",
        "pages._ui.e",
        "pages._ui.g",
        "pages._ui.g.h",
    }
