"""PAGES: the pages of the app, in the order of the navigation."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PAGES", "PageRow"]


@dataclass(frozen=True)
class PageRow:
    """A row of PAGES: ``pages/<key>.py``, at the URL /<key>.

    Attributes:
        key: file, URL and prefix of its texts; its title is the text ``<key>.title``.
        group: the heading it stands under in the navigation: a text ``nav.<group>``.
        icon: a Material symbol.
    """

    key: str
    group: str
    icon: str


PAGES: tuple[PageRow, ...] = (
    PageRow("overview", "walk", ":material/account_tree:"),
    PageRow("project", "walk", ":material/call_split:"),
    PageRow("attend", "walk", ":material/visibility:"),
    PageRow("combine", "walk", ":material/merge:"),
    PageRow("heads", "why", ":material/groups:"),
    PageRow("scale", "why", ":material/straighten:"),
    PageRow("order", "why", ":material/swap_vert:"),
    PageRow("cost", "why", ":material/speed:"),
    PageRow("faithfulness", "why", ":material/fact_check:"),
)
