"""What the page "scale" says of its two trainings, with √d_k and without."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mha_core.scale_race import D_MODEL, HEADS, MEASURED_SEQUENCES, RACERS, STEPS, Lap, first_at
from mha_core.toy_training import CURVE_SEQUENCES
from pages._ui.scale_notes import LIMIT, number, percent
from pages._ui.text import Words

__all__ = ["notice", "text"]

EARLY = 20  # steps: before either training can know the answers
RIGHT = 0.99


def text(t: Words) -> str:
    """What the two models have in common."""
    return t("scale.race_text", d_model=D_MODEL, h=HEADS, d_k=D_MODEL // HEADS, steps=STEPS)


def notice(t: Words, laps: Sequence[Lap], seed: int, rate: str) -> str:
    """What the two trainings did, as far as they came."""
    last, sentences = laps[-1], []
    for divisor in RACERS:
        first, name = first_at(laps, divisor, RIGHT), t(f"scale.by_{divisor}")
        best = max(laps, key=lambda lap: lap.right[divisor])
        values: dict[str, Any] = {"divisor": name, "right": percent(RIGHT), "end": percent(last.right[divisor])}
        if first is None:
            best_share = percent(best.right[divisor])
            sentences.append(t("scale.race_never", best=best_share, at=best.step, steps=last.step, **values))
        else:
            sentences.append(t("scale.race_first", step=first, **values))
    early = next((lap for lap in laps if lap.step == EARLY), None)
    if early is not None and max(early.right.values()) < 0.5:
        dead = {divisor: percent(early.dead[divisor]) for divisor in RACERS}
        sentences.append(t("scale.race_early", steps=EARLY, limit=LIMIT, **dead))
    arrived = [first_at(laps, divisor, RIGHT) is not None for divisor in RACERS]
    if arrived == [True, False]:
        sentences.append(t("scale.race_overshoots", factor=number(math.sqrt(D_MODEL // HEADS)).removesuffix(".00")))
    elif all(arrived):
        sentences.append(t("scale.race_both"))
    if arrived[0] and last.dead["sqrt"] > 0.1:
        sentences.append(t("scale.race_sharp", dead=percent(last.dead["sqrt"])))
    sentences.append(t("scale.race_of", seed=seed, rate=rate, right=CURVE_SEQUENCES, measured=MEASURED_SEQUENCES))
    return "  \n".join(sentences)
