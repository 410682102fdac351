"""One hue a head, from navy to lime, where heads must be told apart; always beside the head's number."""

from __future__ import annotations

from mha_core.figures.theme import Theme, ramp

__all__ = ["head_hues"]

_STOPS = {
    "light": ("#14365C", "#1F6F9F", "#2E9384", "#6F9A2E"),
    "dark": ("#5B82D6", "#47B0DB", "#4ED0B0", "#C6E66B"),
}


def head_hues(theme: Theme, h: int) -> list[str]:
    """A colour for each head; all of them at least 3:1 on the background.

    >>> from mha_core.figures.theme import LIGHT
    >>> head_hues(LIGHT, 2)
    ['#14365C', '#6F9A2E']
    """
    return ["#{:02X}{:02X}{:02X}".format(*colour) for colour in ramp(_STOPS[theme.name], h).tolist()]
