"""The only place that touches the session, the URL and caches.

A setting is an entry of the session under its own name, written as the URL writes it. Visible
controls are set from the settings before they are drawn and write them when they change, so that a
translated face never reaches the URL, and a control that is not on screen keeps its value. All of
them together are *carried* by few hidden text fields that Streamlit binds to the URL.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import streamlit as st
from cachetools import LRUCache

from mha_core.arrays import UploadedInput, read_array
from mha_core.errors import InputError
from mha_core.figures.pick import cell_of
from mha_core.inputs import PRESETS, check_bounds
from mha_core.toy_files import from_safetensors
from mha_core.toy_recording import recorded_model, recorded_name
from mha_core.toy_training import Trained
from pages._ui.calculation import Calculation, Learnt, calculate
from pages._ui.settings import CARRIERS, RULES, Notice, Settings, pack, unpack
from pages._ui.text import LANGUAGES

__all__ = [
    "calculation",
    "choose",
    "control",
    "dismiss",
    "flip",
    "flipped",
    "guess",
    "load",
    "notices",
    "receive_upload",
    "theme",
    "unflip",
    "upload_of",
    "upload_problem",
]

TRACES_BYTES = 16 * 2**20
LEARNT_KEPT = 12  # trained models a session keeps, 80 to 150 kB each
RECORDED_FIRST = "copy-4x1"


def load() -> Settings:
    """Settle URL, carriers and settings. Once a run, before any other widget."""
    session = st.session_state
    session.notices = []
    if "settled" not in session:
        query = st.query_params.to_dict()
        settings, found = _read(unpack(query))
        session.settled, session.url_notices = True, found
        _keep(settings)
        session.h_wanted = session.h
        wanted = {name: value for name, value in query.items() if name not in (*RULES, *CARRIERS)}
        wanted.update((name, value) for name, value in pack(settings.write()).items() if value)
        if wanted != query:
            st.query_params.from_dict(wanted)
            st.rerun()
    else:
        settings, found = _kept()
        session.notices.extend(found)
        _keep(settings)
    carried = pack(settings.write())
    with st.container(key="urlstate"):
        for name, value in carried.items():
            if session.get(name) != value:
                session[name] = value
            st.text_input(name, key=name, bind="query-params", label_visibility="collapsed")
    if (brought := {name: session[name] for name in CARRIERS}) != carried:  # by the browser's Back
        settings, found = _read(unpack(brought))
        session.notices.extend(found)
        _keep(settings)
        session.h_wanted = session.h
    return settings


def language() -> str:
    """The language on screen: the chosen one, or before a choice the browser's."""
    chosen = st.session_state.get("lang", unpack(st.query_params.to_dict()).get("lang", ""))
    browser = "zh" if (st.context.locale or "").lower().startswith("zh") else "en"
    return chosen if chosen in LANGUAGES else browser


def _kept() -> tuple[Settings, tuple[Notice, ...]]:
    return _read({name: st.session_state[name] for name in RULES})


def _read(values: Mapping[str, str]) -> tuple[Settings, tuple[Notice, ...]]:
    """The settings, with the sizes of what was brought: an upload's d_model, a trained model's d_model and h."""
    source, sizes = values.get("src", ""), {}
    if values.get("input") == "upload" and (upload := _uploads().get(source)) is not None:
        sizes = {"d_model": str(upload.X.size(-1))}
    elif values.get("input") == "trained" and (learnt := _learnt(source)) is not None:
        size = learnt.trained.run.size
        sizes = {"d_model": str(size.d_model), "h": str(size.h)}
    return Settings.read({**values, **sizes})


def _keep(settings: Settings) -> None:
    for name, rule in RULES.items():
        if st.session_state.get(name) != (value := rule.write(getattr(settings, name))):
            st.session_state[name] = value


def control(
    settings: Settings, name: str, shown: Any = None, *, place: str = "", taken: Callable[[Any], Any] | None = None
) -> dict[str, Any]:
    """Arguments that tie a visible widget to a setting: its key and its callback.

    ``shown`` is what the widget shows instead of the setting (the browser's language, say, while
    none was chosen); ``place`` tells a second widget for the same setting from the first; ``taken``
    makes the setting of what the widget says, where that is something else.
    """
    key = f"ui_{place}{name}"
    st.session_state[key] = getattr(settings, name) if shown is None else shown
    return {"key": key, "on_change": _chosen, "args": (name, key, taken)}


def _chosen(name: str, key: str, taken: Callable[[Any], Any] | None) -> None:
    value = st.session_state[key]
    if value is None:  # a segmented control that was clicked off keeps its value
        return
    if taken is not None:
        value = taken(value)
    if name == "h":
        st.session_state.h_wanted = str(value)
    elif name == "d_model":
        st.session_state.h = st.session_state.h_wanted
    elif name == "input":
        _enter_or_leave_fixed(value)
        if value == "text" and not st.session_state.text:  # begin with the sentence that was there
            choose("text", next((p.text for p in PRESETS if p.key == st.session_state.input), PRESETS[0].text))
    choose(name, value)


def choose(name: str, value: Any) -> None:
    """Write a setting from a callback."""
    st.session_state[name] = RULES[name].write(value)


def guess(key: str) -> dict[str, Any]:
    """Arguments of a widget that asks for a guess: it stays for the session, whatever page is opened meanwhile."""
    st.session_state[f"ui_guess_{key}"] = st.session_state.get(f"guess_{key}")
    return {"key": f"ui_guess_{key}", "on_change": _guessed, "args": (key,)}


def _guessed(key: str) -> None:
    if (value := st.session_state[f"ui_guess_{key}"]) is not None:
        st.session_state[f"guess_{key}"] = value


def _enter_or_leave_fixed(chosen: str) -> None:
    # These bring their own d_model; what was set before comes back after them.
    session = st.session_state
    fixed = ("pocket", "upload", "trained")
    if chosen in fixed and session.input not in fixed:
        session.before_fixed = session.d_model, session.h
    elif chosen not in fixed and session.input in fixed:
        usual = Settings()  # where the address began with the pocket example
        before = (str(usual.d_model), str(usual.h)) if session.input == "pocket" else (session.d_model, session.h)
        session.d_model, session.h = session.pop("before_fixed", before)
    sources = session.setdefault("sources", {})  # a table is no trained model: each comes back with its input
    sources[session.input] = session.src
    source = sources.get(chosen, "")
    choose("src", source if source in _uploads() or _learnt(source) is not None else "")


def picked(chart: str) -> None:
    """Callback of a chart: a click on a cell chooses it. Clicking it again, or beside it, changes nothing."""
    points = st.session_state[chart]["selection"]["points"]
    if not points:
        return
    for name, index in _cell(chart, points[0]).items():
        choose(name, index)


def _cell(chart: str, point: Mapping[str, int]) -> dict[str, int]:
    return cell_of(st.session_state[f"picks_{chart}"][point["curve_number"]], point["point_index"])


def flip(cells: Iterable[tuple[int, int]]) -> None:
    """Callback: change these (query, key) of one's own mask from allowed to forbidden and back."""
    choose("flipped", RULES["flipped"].read(st.session_state.flipped) ^ frozenset(cells))


def unflip() -> None:
    """Callback: no mask of one's own."""
    choose("flipped", frozenset())


def flipped(chart: str) -> None:
    """Callback of a chart: a click on a cell changes the mask there, and chooses the cell."""
    if (points := st.session_state[chart]["selection"]["points"]) and (cell := _cell(chart, points[0])):
        flip([(cell["query"], cell["key"])])
        picked(chart)


def notices() -> list[Notice]:
    """What there is to tell on this run; what the URL got wrong stays until it is dismissed."""
    return [*st.session_state.get("url_notices", ()), *st.session_state.notices]


def dismiss() -> None:
    """Callback: the notices about the URL were read."""
    st.session_state.url_notices = ()


def receive_upload() -> None:
    """Callback of the file uploader: keep what was read, or the reason why it was not."""
    session = st.session_state
    session.upload_problem = None
    if (file := session.ui_upload) is None:
        return
    data = file.getvalue()
    try:
        upload = read_array(data, file.name)
    except InputError as error:
        session.upload_problem = error
        return
    session.uploads = {f"up-{hashlib.sha256(data).hexdigest()[:8]}": upload}
    (name,) = session.uploads
    choose("src", name)
    choose("d_model", upload.X.size(-1))
    session.h = session.h_wanted


def upload_problem() -> InputError | None:
    """Why the last upload could not be read."""
    problem: InputError | None = st.session_state.get("upload_problem")
    return problem


def upload_of(settings: Settings) -> UploadedInput | None:
    """The upload that the settings speak of, or None when this session does not have it."""
    return _uploads().get(settings.src)


def _uploads() -> Mapping[str, UploadedInput]:
    uploads: Mapping[str, UploadedInput] = st.session_state.get("uploads", {})
    return uploads


def receive_weights() -> None:
    """Callback of the uploader of trained weights: keep what was read, or the reason why it was not."""
    session = st.session_state
    session.weights_problem = session.weights_brought = None
    if (file := session.ui_weights_file) is None:
        return
    try:
        brought = from_safetensors(file.getvalue(), file.name)
        n, size = brought.model.task.n, brought.run.size
        check_bounds(n, n, size.d_model, size.h)  # a file may hold more heads than a page draws
        if brought.model.scale is not None:  # the pages divide by √d_k
            raise InputError("weights_told", file=file.name, name="scale", value=brought.model.scale)
        session.weights_brought = brought
    except InputError as error:
        session.weights_problem = error


def weights_problem() -> InputError | None:
    """Why the last file of weights could not be read."""
    problem: InputError | None = st.session_state.get("weights_problem")
    return problem


def brought_weights() -> Trained | None:
    """The model of the last file of weights."""
    brought: Trained | None = st.session_state.get("weights_brought")
    return brought


def use_trained(trained: Trained, recorded: bool) -> None:
    """Callback: show this model on every page, with the mask that it was trained with."""
    if recorded:
        name = recorded_name(trained.run.task, trained.run.size)
    else:
        told = (trained.run.task, trained.run.size, trained.run.seed, trained.model.scale)  # all that decides numbers
        data = b"".join(numbers.numpy().tobytes() for numbers in trained.model.state_dict().values())
        name = f"run-{hashlib.sha256(repr(told).encode() + data).hexdigest()[:8]}"
        kept = {**st.session_state.get("learnt", {}), name: Learnt(trained)}
        st.session_state.learnt = dict(list(kept.items())[-LEARNT_KEPT:])
    _enter_or_leave_fixed("trained")
    choose("input", "trained")
    choose("src", name)
    choose("mask", "causal" if trained.model.task.layered else "none")


def learnt_of(settings: Settings) -> Learnt | None:
    """The trained model that the settings speak of, or None when this session does not have it."""
    return _learnt(settings.src)


def _learnt(name: str) -> Learnt | None:
    kept: Mapping[str, Learnt] = st.session_state.get("learnt", {})
    if name in kept:
        return kept[name]
    trained = recorded_model(name) if name else recorded_model(RECORDED_FIRST)
    return None if trained is None else Learnt(trained, recorded=True)


def calculation(settings: Settings) -> Calculation:
    """The calculation of these settings, shared by all sessions while it fits into memory.

    Raises:
        InputError: as :func:`pages._ui.calculation.calculate`.
        LookupError: the upload is not in this session.
    """
    # What another session uploaded or trained is not this one's to see.
    brought = learnt_of(settings) if settings.input == "trained" else upload_of(settings)
    if settings.input == "upload" and brought is None:
        raise LookupError("upload_gone" if settings.src else "upload_none")
    if settings.input == "trained" and brought is None:
        raise LookupError("trained_gone")
    cache, lock = _traces()
    key = settings.calculation()
    with lock:
        if (known := cache.get(key)) is not None:
            return known
    computed = calculate(settings, brought)
    if computed.bytes <= TRACES_BYTES:  # the very largest are computed each time
        with lock:
            cache[key] = computed
    return computed


def token_count(settings: Settings) -> int:
    """n of these settings; 0 where the input cannot be used (the page says why)."""
    try:
        return len(calculation(settings).tokens)
    except (InputError, LookupError):
        return 0


@st.cache_resource
def _traces() -> tuple[LRUCache[tuple[Any, ...], Calculation], threading.Lock]:
    return LRUCache(TRACES_BYTES, getsizeof=lambda computed: computed.bytes), threading.Lock()


def theme() -> str:
    """The theme on screen: "light" or "dark"."""
    return "dark" if st.context.theme.type == "dark" else "light"
