"""What the page "heads" says and hands to its pictures: the verdict, what each head does, what goes without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from mha_core.figures.heads_sweep import Swept
from mha_core.figures.training import Learner, floor_share
from mha_core.head_rank import narrow_heads
from mha_core.one_head import one_head_averages
from mha_core.toy_ablation import ENOUGH, Head, redundancy
from mha_core.toy_compare import Moment
from mha_core.toy_report import Report
from mha_core.toy_roles import Role, Roles
from mha_core.toy_tasks import Size, ToyTask
from pages._ui import tables
from pages._ui.calculation import CLEAR
from pages._ui.text import Words

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "RANK_N", "ablation_alt", "about_model", "all_roles", "growing", "head_label", "heads_table", "learners", "needs",
    "rank",
    "redundant", "role_name", "runs", "size_name", "sweep_alt", "sweep_notice", "table", "take",
    "targets", "token_names", "training_alt", "verdict",
]  # fmt: skip


def size_name(t: Words, task: ToyTask, size: Size) -> str:
    """h = 4, or with its layers in a task that is about them."""
    kind = "one_layer" if size.layers == 1 else "layers"
    return t(f"heads.size_{kind}" if task.layered else "heads.size", h=size.h, layers=size.layers)


def targets(t: Words, task: ToyTask) -> list[str]:
    """The names of the targets."""
    return [t(f"heads.target.{target}") for target in task.targets]


def token_names(task: ToyTask, tokens: Any) -> list[str]:
    """How a sequence, (n, parts), is written."""
    return [task.label(tuple(at)) for at in tokens.tolist()]


def about_model(t: Words, task: ToyTask, counts: Sequence[int], batch: int) -> str:
    """What is trained, and how many numbers it has."""
    equal = len(set(counts)) == 1
    numbers = " / ".join(f"{count:,}" for count in dict.fromkeys(counts))
    layers = t("heads.layers_many" if task.layered else "heads.layers_one")
    parameters = t("heads.parameters_equal" if equal else "heads.parameters_near", parameters=numbers)
    return t("heads.model", layers=layers, parameters=parameters, batch=batch)


def growing(
    t: Words, task: ToyTask, sizes: Sequence[Size], moments: Sequence[Moment], names: Sequence[Sequence[str]]
) -> list[Learner]:
    """What the picture draws of a training that is running."""
    return [
        _learner(size_name(t, task, size), size, [moment.points[index] for moment in moments], None, own)
        for index, (size, own) in enumerate(zip(sizes, names, strict=True))
    ]


def learners(t: Words, task: ToyTask, reports: Sequence[Report]) -> list[Learner]:
    """What the picture draws of trainings that are over."""
    drawn = []
    for report in reports:
        run, names = report.run, [role_name(t, role) for role in all_roles(report.roles)]
        drawn.append(_learner(size_name(t, task, run.size), run.size, run.points, run.accuracy, names))
    return drawn


def _learner(name: str, size: Size, points: Sequence[Any], final: Any, names: Sequence[str]) -> Learner:
    last = points[-1].accuracy if final is None else final
    return Learner(
        name, size.d_model // size.h, [point.step for point in points],
        [point.accuracy.joint for point in points], last.joint, last.targets, points[-1].maps[0], names,
    )  # fmt: skip


def head_label(t: Words, head: Head, layers: int) -> str:
    """A head's number from 1, with its layer's where there are several."""
    layer, index = head
    return t("heads.layer_head", layer=layer + 1, head=index + 1) if layers > 1 else str(index + 1)


def role_name(t: Words, role: Role) -> str:
    """Where a head looks, and with what share of its attention."""
    place = t(f"role.trained.{role.place}") if role.mass >= CLEAR else t("heads.no_role")
    return f"{place} {role.mass:.2f}".replace(" 0.", " .")


def all_roles(roles: Roles) -> list[Role]:
    """Layer by layer."""
    layers, h, _ = roles.mass.shape
    return [roles.of(layer, head) for layer in range(layers) for head in range(h)]


def training_alt(t: Words, drawn: Sequence[Learner], steps: int) -> str:
    """The picture in words."""
    ends = ", ".join(t("heads.end", name=one.name, share=floor_share(one.joint_now)) for one in drawn)
    return t("heads.alt", steps=steps, ends=ends)


def table(t: Words, task: ToyTask, reports: Sequence[Report]) -> str:
    """A row a model: sizes, how often each target is right, and when it was solved."""
    own = ("model", "d_k", "parameters"), ("solved", "seconds")
    names = [*targets(t, task), t("heads.target.joint")]
    before, after = ([t(f"heads.table.{key}") for key in keys] for keys in own)
    rows = []
    for run in (report.run for report in reports):
        solved = next((str(point.step) for point in run.points if point.accuracy.joint >= ENOUGH), "–")
        size = [size_name(t, task, run.size), str(run.size.d_model // run.size.h), f"{run.parameters:,}"]
        shares = map(floor_share, (*run.accuracy.targets, run.accuracy.joint))
        rows.append([*size, *shares, solved, f"{run.seconds:.1f}"])
    return tables.markdown([*before, *names, *after], rows)


def heads_table(t: Words, report: Report) -> str:
    """A row a head: where it looks, how far that depends on the sequence, and how far the most alike head is away."""
    roles, size = report.roles, report.run.size
    places = [t(f"role.trained.{place}") for place in roles.places]
    rows = []
    for layer, head in ((layer, head) for layer in range(size.layers) for head in range(size.h)):
        apart = [value for other, value in enumerate(roles.divergence[layer, head].tolist()) if other != head]
        shares = (f"{share:.2f}" for share in roles.mass[layer, head].tolist())
        alike = f"{min(apart):.2f}" if apart else "–"
        rows.append([head_label(t, (layer, head), size.layers), *shares, f"{roles.movement[layer, head]:.2f}", alike])
    return tables.markdown([t("table.head"), *places, t("heads.table.movement"), t("heads.table.alike")], rows)


def verdict(t: Words, task: ToyTask, reports: Sequence[Report]) -> str:
    """What to notice, true of these very runs."""
    joint = {(report.run.size.layers, report.run.size.h): report.run.accuracy.joint for report in reports}
    if task.key == "induction":
        if not {(2, 1), (1, 1), (1, 4)} <= joint.keys():
            return ""
        one, wide_h4, wide_h1 = (floor_share(joint[size]) for size in ((2, 1), (1, 4), (1, 1)))
        deep = next(report for report in reports if report.run.size.layers == 2)
        told = t("heads.verdict.induction", one=one, wide_h4=wide_h4, wide_h1=wide_h1)
        return t.sentences(told, *_why_induction(t, deep, joint))
    many = max((report for report in reports if report.run.size.h > 1), default=None, key=_solved_first)
    if (1, 1) not in joint or many is None:
        return ""
    h, run = many.run.size.h, many.run
    values = {"one": floor_share(joint[1, 1]), "many_h": h, "many": floor_share(run.accuracy.joint)}
    told = [t(f"heads.verdict.{task.key}", **values)]
    if run.accuracy.joint < ENOUGH:
        told.append(t("heads.verdict.longer", steps=run.steps))
    elif task.key == "copy":
        told.append(t("heads.verdict.copy_why"))
    elif task.key == "recall" and _shared_by_two(reports):
        told.append(t("heads.verdict.recall_why"))
    elif task.key == "control" and all(role.mass >= CLEAR for role in all_roles(many.roles)):
        apart = many.roles.divergence[0].sum() / (h * (h - 1))
        told.append(t("heads.verdict.control_why", many_h=h, divergence=f"{apart:.2f}"))
    return t.sentences(*told)


def _why_induction(t: Words, deep: Report, joint: Mapping[tuple[int, int], float]) -> list[str]:
    """What the two layers do, where they have learnt it."""
    if deep.run.accuracy.joint < ENOUGH:
        return [t("heads.verdict.longer", steps=deep.run.steps)]
    told = []
    back = deep.run.points[-1].maps[:, 0, 0].diagonal(-1, 1, 2).mean(0)  # (n − 1,): the share on the letter before
    half = len(back) // 2
    after = deep.roles.of(1, 0)
    if back[:half].mean() >= CLEAR and back[:half].mean() > back[half:].mean() and after.place == "after":
        told.append(t("heads.verdict.induction_how"))
    if joint[2, 1] > joint[1, 4] > joint[1, 1]:
        told.append(t("heads.verdict.induction_depth"))
    return told


def _shared_by_two(reports: Sequence[Report]) -> bool:
    """Whether the model with two heads has one for the key, which moves with the sequence, and one for the place."""
    two = next((report for report in reports if report.run.size.h == 2), None)
    if two is None:
        return False
    found = sorted((role.place, role.mass >= CLEAR, -moves) for role, moves in
                   zip(all_roles(two.roles), two.roles.movement[0].tolist(), strict=True))  # fmt: skip
    return [place for place, clear, _ in found if clear] == ["match", "slot"] and found[0][2] < found[1][2]


def _solved_first(report: Report) -> tuple[bool, int]:
    """The fewest heads that solve it; else the most."""
    solved = report.run.accuracy.joint >= ENOUGH
    return solved, -report.run.size.h if solved else report.run.size.h


def take(t: Words, task: ToyTask, report: Report) -> str:
    """What becomes of the targets without each one of the heads."""
    tried = report.ablations
    assert tried is not None
    parts = []
    for head in tried.heads:
        left = tried.without(head)
        lost = [
            (name, share)
            for name, share, was in zip(targets(t, task), left.targets, report.run.accuracy.targets, strict=True)
            if share < ENOUGH <= was
        ]
        what = t("heads.lost_none")
        if lost:
            names, shares = zip(*lost, strict=True)
            shown = t("list").join(map(floor_share, shares))
            what = t("heads.lost_some", targets=t("list").join(names), shares=shown)
        parts.append(t("heads.take_part", head=head_label(t, head, report.run.size.layers), lost=what))
    told = t("heads.take_truth", parts=t("semicolon").join(parts))
    return t.sentences(told, t("heads.take_chance", chance=f"1/{task.classes}"))


def redundant(t: Words, report: Report) -> str:
    """How many heads can go."""
    tried, layers = report.ablations, report.run.size.layers
    assert tried is not None
    found, h = redundancy(tried), len(tried.heads)
    if found.together < 0:
        return t("heads.redundant_unsolved", h=h, left=floor_share(found.best[0]))
    if found.together == 0:
        return t("heads.redundant_none", h=h, left=floor_share(found.best[1]))
    kept = t("list").join(head_label(t, head, layers) for head in found.kept)
    return t(
        "heads.redundant", h=h, alone=len(found.alone), together=found.together, kept=kept, subsets=2**h,
        left=floor_share(found.best[found.together]), more=floor_share(found.best[found.together + 1]),
    )  # fmt: skip


def ablation_alt(t: Words, names: Sequence[str], target_names: Sequence[str], now: Sequence[float]) -> str:
    """The second picture in words."""
    ends = zip(target_names, map(floor_share, now), strict=True)
    shares = t("list").join(t("heads.end", name=name, share=share) for name, share in ends)
    return t("heads.ablation_alt", heads=t("list").join(names), targets=shares)


def runs(t: Words, task: ToyTask, ends: Sequence[Sequence[float]]) -> str:
    """Over several seeds, the joint accuracy of each size: median and extremes; and who fails in every run.

    Args:
        ends: for each of the task's sizes, the joint accuracy of each seed.
    """
    parts, failing = [], []
    for size, joint in zip(task.sizes, ends, strict=True):
        low, middle, high = (floor_share(value) for value in (min(joint), median(joint), max(joint)))
        parts.append(t("heads.run_part", name=size_name(t, task, size), median=middle, low=low, high=high))
        if max(joint) < ENOUGH:
            failing.append(size_name(t, task, size))
    told = t("heads.runs", seeds=len(ends[0]), parts=t("semicolon").join(parts))
    return t.sentences(told, t("heads.fails", sizes=t("list").join(failing))) if failing else told


def sweep_alt(t: Words, swept: Sequence[Swept]) -> str:
    """The picture of the sweep in words."""
    ends = (
        t("heads.end", name=f"{one.name}, h = {h}", share=floor_share(median(joint)))
        for one in swept
        for h, joint in zip(one.heads, one.ends, strict=True)
    )
    return t("list").join(ends)


def sweep_notice(t: Words, swept: Sequence[Swept]) -> str:
    """From how many heads on it works, and what becomes of it when they get very narrow."""
    parts = []
    for one in swept:
        solved = [h for h, joint in zip(one.heads, one.ends, strict=True) if median(joint) >= ENOUGH]
        last = one.heads[-1]
        parts.append(
            t("heads.sweep_part", task=one.name, solved=t("list").join(map(str, solved)) or "–", most=last,
              least=one.d_model // last, share=floor_share(median(one.ends[-1])))
        )  # fmt: skip
    return t("heads.sweep_notice", parts=t("semicolon").join(parts))


def needs(t: Words) -> str:
    """One head averages, exactly."""
    found = one_head_averages()

    def vector(values: Tensor) -> str:
        return "(" + ", ".join(f"{value:g}".replace("-", "−") for value in values.tolist()) + ")"

    outputs = {
        name: vector(getattr(found, name)["output"].sel(batch=0, query=0).value)
        for name in ("one", "one_swapped", "two", "two_swapped")
    }
    return t("heads.needs", a=vector(found.a), b=vector(found.b), **outputs)


RANK_N, RANK_D_MODEL = 12, 16


def rank(t: Words, seed: int) -> str:
    """How many favourites the queries have at d_k = 1, and in one head as wide as d_model."""
    narrow, wide = (narrow_heads(RANK_N, RANK_D_MODEL, d_k, seed) for d_k in (1, RANK_D_MODEL))
    names = sorted({int(key) for key in narrow.trace["raw_scores"].sel(batch=0, head=0).value.argmax(-1)})
    return t(
        "heads.rank_truth", count=len(names), names=t("list").join(f"x{key + 1}" for key in names),
        rank=int(narrow.ranks[0]), wide=RANK_D_MODEL, wide_count=int(wide.favoured[0]), wide_rank=int(wide.ranks[0]),
    )  # fmt: skip
