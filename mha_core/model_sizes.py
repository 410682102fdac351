"""MODEL_SIZES: the attention of published models, as their papers give it."""

from __future__ import annotations

from dataclasses import dataclass

from mha_core.sizes import Sizes

__all__ = ["MODEL_SIZES", "ModelSizes", "model_sizes"]


@dataclass(frozen=True)
class ModelSizes:
    """A row of MODEL_SIZES.

    Attributes:
        key: its name in an address.
        name: as the paper writes it.
        source: paper, year, table.
        sizes: of its attention; n is the longest sequence it was trained on, layers those of one stack.
    """

    key: str
    name: str
    source: str
    sizes: Sizes


def _row(key: str, name: str, source: str, d_model: int, h: int, n: int, layers: int, **more: object) -> ModelSizes:
    return ModelSizes(key, name, source, Sizes.standard(d_model, h, n, layers=layers, **more))


MODEL_SIZES: tuple[ModelSizes, ...] = (
    _row("base", "Transformer (base)", "Vaswani et al. 2017, section 3.2.2 and table 3", 512, 8, 512, 6, bias=False),
    _row("bert", "BERT base", "Devlin et al. 2019, section 3", 768, 12, 512, 12),
    _row("opt", "OPT-175B", "Zhang et al. 2022, table 1", 12288, 96, 2048, 96, dtype="float16"),
    _row("palm", "PaLM 540B", "Chowdhery et al. 2022, section 2 and table 1", 18432, 48, 2048, 118,
         d_k=256, d_v=256, h_kv=1, dtype="bfloat16", bias=False),
    _row("llama2", "Llama 2 70B", "Touvron et al. 2023 and the released configuration", 8192, 64, 4096, 80,
         h_kv=8, dtype="bfloat16", bias=False),
)  # fmt: skip
"""Dense attention throughout. The Transformer's paper names no longest sequence: 512 is this table's own there."""


def model_sizes(key: str) -> ModelSizes:
    """The row of that key.

    Raises:
        KeyError: there is none.

    >>> model_sizes("llama2").sizes.h_kv
    8
    """
    for row in MODEL_SIZES:
        if row.key == key:
            return row
    raise KeyError(f"there is no model {key!r}; choose from {', '.join(row.key for row in MODEL_SIZES)}")
