"""An option is a field of a dataclass: checked in Python, a flag, and a field of a web request."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
import typer

from gazediffusion import settings
from gazediffusion.cli import VERBS, app
from gazediffusion.errors import GazeError
from gazediffusion.options import (
    Options,
    choices_of,
    command,
    declared,
    flag_of,
    flags,
    grouped,
    hint_of,
    option,
    request_field,
    words_of,
)
from gazediffusion.web.settings import Limits, Settings
from tests.conftest import RunCommand

GROUPS = [
    one
    for one in (*vars(settings).values(), Limits, Settings)
    if isinstance(one, type) and issubclass(one, Options) and declared(one)
]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
# Words that mean one thing in every command, and the fields that they may state.
MEANINGS = {
    "--format": {"format"},  # of the output
    "--input-format": {"input_format"},
    "--rate": {"rate_hz", "rate"},  # of the windows, or of what is simulated
    "--source-rate": {"source_rate_hz"},
    "--task": {"task"},  # of the model
    "--only": {"tasks"},
    "--stride": {"stride_s", "stride"},
}


@dataclass(frozen=True)
class Tried(Options):
    """One option of each kind."""

    name: str | None = option(None, "A text.")
    seconds: float | None = option(None, "A number.", ge=1, le=3600)
    positive: float = option(1.0, "A number.", gt=0)
    share: float = option(0.2, "A number.", ge=0, lt=1)
    kind: Literal["a", "b"] | None = option(None, "A choice.")
    adds: bool = option(False, "A switch.")
    draws: bool | None = option(None, "A switch with a default of its own.")
    many: tuple[str, ...] = option((), "Several.", flag="--one-of")
    pair: tuple[str, ...] = option(
        (), "Parsed.", kind=str, parse=lambda text: tuple(text.split("+")) if text else ()
    )
    path: Path | None = option(None, "A path.", flag="-p --path")
    eta: float | None = option(None, "Rare.", rare=True, ge=0)
    held: object = None


def ran(*words: str) -> Tried:
    """What a command made of the group is given."""
    found: list[Tried] = []

    def tried(group: Tried) -> None:
        found.append(group)

    tried.__annotations__["group"] = Tried
    lone = typer.Typer()
    lone.command()(command(tried))
    lone(list(words), standalone_mode=False)
    return found[0]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"seconds": 0.5}, "`seconds` must lie between 1 and 3600, not 0.5"),
        ({"seconds": float("nan")}, "`seconds` must lie"),
        ({"seconds": "ten"}, "`seconds` must lie"),
        ({"positive": 0}, "`positive` must be a positive number, not 0"),
        ({"positive": float("inf")}, "`positive` must be a positive number"),
        ({"share": 1}, "`share` must be 0 or more and less than 1"),
        ({"kind": "c"}, "`kind` must be a or b, not 'c'"),
    ],
)
def test_values_out_of_bounds_are_refused_whoever_gives_them(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(GazeError, match=problem):
        Tried(**given)
    with pytest.raises(GazeError, match=problem):
        grouped([Tried()], given, Tried)


def test_flags_reach_their_fields() -> None:
    assert ran() == Tried()
    made = ran(
        *("--name", "n", "--seconds", "2", "--kind", "b", "--adds", "--no-draws", "-p", "x"),
        *("--one-of", "1", "--one-of", "2", "--pair", "u+v", "--set", "eta=0.5"),
    )
    assert (made.name, made.seconds, made.kind, made.adds, made.draws) == (
        "n",
        2.0,
        "b",
        True,
        False,
    )
    assert (made.path, tuple(made.many), made.pair) == (Path("x"), ("1", "2"), ("u", "v"))
    assert made.eta == 0.5
    with pytest.raises(GazeError, match="no `set` 'etta'; did you mean 'eta'"):
        ran("--set", "etta=1")
    with pytest.raises(GazeError, match="`eta` must be of type float, not 'x'"):
        ran("--set", "eta=x")


def test_words_of_options_give_the_options_again() -> None:
    made = ran("--name", "a b", "--adds", "--no-draws", "--one-of", "1", "--set", "eta=0.5")
    given = {name: getattr(made, name) for name in ("name", "adds", "draws", "many", "eta")}
    assert ran(*words_of(given, Tried)) == made


def test_groups_are_given_as_such_or_by_name() -> None:
    filling, sampled = grouped(
        [settings.Filling(draws=3)], {"seed": 4, "quality": "best"}, settings.Filling,
        settings.Sampled,
    )  # fmt: skip
    assert (filling.draws, filling.seed, sampled.quality) == (3, 4, "best")
    with pytest.raises(GazeError, match="no option `drawz`; did you mean 'draws'"):
        grouped([], {"drawz": 1}, settings.Filling)


def test_two_groups_of_a_command_share_no_name() -> None:
    def twice(filling: settings.Filling, scoring: settings.Scoring) -> None: ...

    twice.__annotations__ |= {"filling": settings.Filling, "scoring": settings.Scoring}
    with pytest.raises(TypeError, match="two options are called"):
        command(twice)


def test_a_field_of_a_request_states_the_option() -> None:
    from pydantic import BaseModel

    class Request(BaseModel):
        share: float = request_field(Tried, "share")
        kind: str | None = request_field(Tried, "kind", examples=["a"])

    described = Request.model_json_schema()["properties"]
    assert described["share"]["description"] == "A number."
    assert described["share"]["default"] == Request().share == 0.2
    assert (described["share"]["minimum"], described["share"]["exclusiveMaximum"]) == (0, 1)
    assert (described["kind"]["enum"], described["kind"]["examples"]) == (["a", "b"], ["a"])


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_option_has_a_help_a_type_and_a_default_that_is_valid(group: type[Options]) -> None:
    group()
    for one in declared(group):
        assert one.metadata["help"].endswith((".", ".'", "?")), one.name
        assert one.metadata["kind"] or hint_of(group, one) is not object, one.name
        choices = choices_of(hint_of(group, one))
        assert one.default in (None, *choices) or not choices, one.name


def test_commands_are_few_and_none_has_more_than_25_options() -> None:
    assert len(VERBS) == len(COMMANDS) <= 15
    for name, verb in COMMANDS.items():
        assert sum(one.param_type_name == "option" for one in verb.params) <= 25, name


def test_reading_has_eight_flags_and_the_rest_is_in_study_yaml() -> None:
    stated = flags(settings.Reading).values()
    assert sum(one.startswith("--") for one in stated) == 8
    assert {one.split()[-1] for one in stated if not one.startswith("--")} == {"study.yaml"}


def test_a_word_has_one_meaning_in_all_commands() -> None:
    for verb in COMMANDS.values():
        for one in verb.params:
            for word in {*one.opts} & MEANINGS.keys():
                assert one.name in MEANINGS[word], (verb.name, word, one.name)


def test_every_option_of_a_command_is_that_of_its_group() -> None:
    for verb in VERBS:
        parameters = {p.name: p for p in COMMANDS[verb.__name__].params}
        for group in _groups(verb):
            for one in declared(group):
                if not one.metadata["rare"]:
                    assert flag_of(one) in (
                        *parameters[one.name].opts, *parameters[one.name].secondary_opts,
                    )  # fmt: skip
                else:
                    assert one.name not in parameters


def _groups(verb: Any) -> list[type[Options]]:
    from inspect import signature

    found = (one.annotation for one in signature(verb, eval_str=True).parameters.values())
    return [one for one in found if isinstance(one, type) and issubclass(one, Options)]


@pytest.mark.parametrize("verb", ["", *COMMANDS])
def test_every_verb_teaches_with_help_in_panels(run: RunCommand, verb: str) -> None:
    code, said, _ = run(*[verb] if verb else [], "--help")
    assert code == 0
    assert "Example" in said if verb else "inspect" in said
    if verb == "generate":
        panels = ("Options", "Screen", "Output", "Steering", "Sampling", "Hardware")
        places = [said.index(f" {panel} ") for panel in panels]
        assert places == sorted(places)
        assert said[places[0] : places[1]].count("--") <= 14  # the ten that are needed first
