"""Settings: every control, its URL, and what happens to what a URL cannot say."""

import random
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mha_core.inputs import POCKET
from pages._ui.settings import (
    CARRIERS,
    RULES,
    Indices,
    Name,
    OneOf,
    Pairs,
    Settings,
    Switch,
    Text,
    Whole,
    divisors,
    nearest_divisor,
    pack,
    unpack,
)


def some_value(rule, rng):
    match rule:
        case Whole(low, high):
            return rng.randint(low, high)
        case OneOf(codes):
            return rng.choice(codes)
        case Switch():
            return rng.random() < 0.5
        case Indices(high):
            return tuple(sorted(rng.sample(range(high + 1), rng.randint(0, high))))
        case Pairs(high):
            return frozenset((rng.randint(0, high), rng.randint(0, high)) for _ in range(rng.randint(0, 9)))
        case Name(longest):
            return "".join(rng.choice("abz-019") for _ in range(rng.randint(0, longest)))
        case Text(longest):
            return "".join(rng.choice("ab 猫&=#%\"<'\\`$é") for _ in range(rng.randint(0, min(longest, 12))))


@pytest.mark.parametrize("seed", range(200))
def test_settings_survive_the_way_into_a_url_and_back(seed):
    rng = random.Random(seed)
    some = Settings(**{name: some_value(rule, rng) for name, rule in RULES.items()})
    consistent, _ = some.consistent()
    again, notices = Settings.read(consistent.write())
    assert again == consistent
    assert notices == ()
    assert again.write() == consistent.write()


keys = st.sampled_from([*RULES, "utm_source", "", "H", "d_model "])
values = st.one_of(
    st.text(max_size=30), st.integers().map(str), st.sampled_from(["nan", "1e3", "０", "-1", "true", "４"])
)


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(keys, values, max_size=8))
def test_no_query_string_raises_and_each_bad_value_is_named(query):
    read, notices = Settings.read(query)
    assert Settings.read(read.write()) == (read, ())
    named = {notice.values["name"] for notice in notices if notice.key == "url"}
    for name in named:
        assert getattr(read, name) in (getattr(Settings(), name), getattr(read.consistent()[0], name))
    for name, rule in RULES.items():
        if name in query and name not in named:
            rule.read(query[name])


def test_a_bad_value_is_named_with_what_is_allowed_and_what_is_taken():
    _, (notice,) = Settings.read({"mask": "foo"})
    assert (notice.key, notice.values["name"], notice.values["value"]) == ("url", "mask", "foo")
    assert "causal" in notice.values["allowed"]
    assert notice.values["taken"] == "none"


def test_a_source_that_would_say_other_settings_on_the_way_back_is_none():
    read, (notice,) = Settings.read({"src": "x~h.2"})
    assert (read, notice.values["name"]) == (Settings(), "src")


def test_h_is_kept_when_it_divides_and_snapped_to_the_nearest_divisor_when_not():
    assert Settings.read({"d_model": "60", "h": "5"})[0].h == 5
    read, (notice,) = Settings.read({"d_model": "64", "h": "7"})
    assert (read.h, notice.key, dict(notice.values)) == (8, "h_snapped", {"h": 7, "d_model": 64, "taken": 8})


def test_divisors_and_the_nearest_one():
    assert divisors(64) == (1, 2, 4, 8, 16)
    assert divisors(7) == (1, 7)
    assert divisors(509) == (1,)  # a prime
    assert [nearest_divisor(12, h) for h in (1, 5, 7, 8, 16)] == [1, 4, 6, 6, 12]


def test_a_focus_head_that_is_gone_becomes_the_last_one():
    read, (notice,) = Settings.read({"h": "4", "head": "9"})
    assert read.head == 3
    assert notice.values["head"] == 10  # heads are counted from 1 on screen


def test_the_pocket_example_brings_its_own_sizes():
    read, notices = Settings.read({"input": "pocket"})
    assert (read.d_model, read.h, notices) == (POCKET.d_model, POCKET.h, ())


def test_what_is_only_looked_at_does_not_decide_what_is_computed():
    plain = Settings()
    assert plain.calculation() == Settings(lang="zh", head=3).calculation()
    for row in fields(Settings):
        if not row.metadata["view"]:
            other = some_other(row, RULES[row.name])
            assert Settings(**{row.name: other}).calculation() != plain.calculation(), row.name


def some_other(row, rule):
    rng = random.Random(0)
    return next(value for _ in range(99) if (value := some_value(rule, rng)) != row.default)


@pytest.mark.parametrize("seed", range(50))
def test_an_address_carries_every_setting_in_one_parameter_beside_what_users_type(seed):
    rng = random.Random(seed)
    some = Settings(**{name: some_value(rule, rng) for name, rule in RULES.items()}).consistent()[0]
    carried = pack(some.write())
    assert tuple(carried) == CARRIERS
    assert Settings.read(unpack(carried)) == (some, ())


def test_plain_parameters_are_understood_beside_the_packed_one():
    read, notices = Settings.read(unpack({"set": "d_model.128~h.8~mask.foo~nonsense~.x", "seed": "3"}))
    assert (read.d_model, read.h, read.seed) == (128, 8, 3)
    assert [notice.values["name"] for notice in notices] == ["mask"]
