"""An option is stated once: a field of a dataclass becomes flag, web field, keyword and check.

`Options` checks bounds and choices, whoever gives the values. `command` makes a function with
such a dataclass among its parameters a command of the command line, `request_field` makes an option
a field of a web request. typer and pydantic are imported by these two alone.

    @dataclass(frozen=True)
    class Sampling(Options):
        seconds: float | None = option(None, "Length of every window.", ge=1, le=3600)
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from inspect import Parameter, Signature, signature
from numbers import Real
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from gazediffusion.errors import GazeError, suggestion

# Bounds by their names in pydantic, with the words of the error.
_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "{} or more"),
    "gt": (operator.gt, "more than {}"),
    "le": (operator.le, "at most {}"),
    "lt": (operator.lt, "less than {}"),
}
# The same in a JSON schema.
_IN_JSON = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
# Panels of the command line's help, in their order; the main options, without one, come first.
_PANELS = (None, "Input", "Screen", "Split", "Output", "Steering", "Sampling", "Hardware", "Rare")


def option(
    default: Any,
    help: str,
    *,
    flag: str | None = None,
    panel: str | None = None,
    kind: Any = None,
    parse: Callable[[Any], Any] | None = None,
    rare: bool = False,
    envvar: str | None = None,
    repr: bool = True,
    **bounds: float,
) -> Any:
    """A field that is an option.

    flag: where it is not the name with dashes; several are separated by blanks. panel: of `--help`,
    where it is not that of the class. kind: the type on the command line and the web, where it is
    not that of the field. parse: makes the value of what is given, a text or the value itself.
    rare: has no flag of its own. envvar: states it too. bounds: ge, gt, le, lt.
    """
    stated = {"help": help, "flag": flag, "panel": panel, "kind": kind, "parse": parse}
    metadata = {**stated, "rare": rare, "envvar": envvar, "bounds": bounds}
    return field(default=default, repr=repr, metadata=metadata)


@dataclass(frozen=True)
class Options:
    """Base of dataclasses of options."""

    PANEL: ClassVar[str]  # of the command line's help, for the options that a class declares
    RARE: ClassVar[str] = "--set {}"  # how the command line states a rare option

    def __post_init__(self) -> None:
        for one in declared(type(self)):
            value = getattr(self, one.name)
            if value is not None and (parse := one.metadata["parse"]) is not None:
                value = parse(value)
                object.__setattr__(self, one.name, value)
            if value is not None:
                _require(one, value, hint_of(type(self), one))


def grouped(
    options: Sequence[Options], given: Mapping[str, Any], *kinds: type[Options]
) -> list[Any]:
    """One group of options of each kind: that of `options`, with what is given by name.

    >>> from gazediffusion.settings import Filling, Sampled
    >>> [one.draws if isinstance(one, Filling) else one.quality for one in grouped(
    ...     [Filling(seed=3)], {"draws": 2}, Filling, Sampled)]
    [2, 'default']
    """
    made = [next((one for one in options if type(one) is kind), kind()) for kind in kinds]
    names = [{one.name for one in fields(kind)} for kind in kinds]
    for name in given:
        if not any(name in of_kind for of_kind in names):
            known = sorted(set().union(*names))
            raise GazeError(f"there is no option `{name}`", remedy=suggestion(name, known))
    return [
        replace(one, **{name: value for name, value in given.items() if name in of_kind})
        for one, of_kind in zip(made, names, strict=True)
    ]


def stated(options: Options) -> dict[str, Any]:
    """The options that differ from their defaults."""
    values = {one.name: getattr(options, one.name) for one in fields(options)}
    defaults = {one.name: one.default for one in fields(options)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def declared(group: type[Options]) -> list[Field[Any]]:
    """The fields of a group that are options; others are given in Python alone."""
    return [one for one in fields(group) if "help" in one.metadata]


def hint_of(group: type[Options], one: Field[Any]) -> Any:
    """The type of a field; of those whose names are imported for type checkers only, object."""
    try:
        return eval(str(one.type), {**vars(sys.modules[owner_of(group, one).__module__])})
    except NameError:
        return object


def owner_of(group: type[Options], one: Field[Any]) -> type[Options]:
    """The class that declares an option of a group."""
    return next(base for base in group.__mro__ if one.name in vars(base).get("__annotations__", ()))


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The choices of a Literal, or of a Literal beside None."""
    kind = _without_none(hint)
    return get_args(kind) if get_origin(kind) is Literal else ()


def _without_none(hint: Any) -> Any:
    """The type beside None."""
    return get_args(hint)[0] if get_origin(hint) in (UnionType, Union) else hint


def _require(one: Field[Any], value: Any, hint: Any) -> None:
    """Refuse a value out of bounds, or one that is no choice."""
    choices, bounds = choices_of(hint), one.metadata["bounds"]
    if choices and value not in choices:
        listed = ", ".join(map(str, choices[:-1]))
        raise GazeError(f"`{one.name}` must be {listed} or {choices[-1]}, not {value!r}")
    is_bounded = isinstance(value, Real) and (
        math.isfinite(value) or bounds.get("le") == math.inf  # that may be infinite
    )
    if bounds and not (
        is_bounded and all(_BOUNDS[name][0](value, bounds[name]) for name in bounds)
    ):
        raise GazeError(f"`{one.name}` must {bounds_in_words(bounds)}, not {value}")


def bounds_in_words(bounds: Mapping[str, float]) -> str:
    """As `lie between 1 and 3600`, `be 1 or more`, or `be a positive number`."""
    bounds = {name: bound for name, bound in bounds.items() if bound != math.inf}
    if bounds.keys() == {"ge", "le"}:
        return f"lie between {bounds['ge']:g} and {bounds['le']:g}"
    if bounds == {"gt": 0}:
        return "be a positive number"
    words = (_BOUNDS[name][1].format(f"{bound:g}") for name, bound in bounds.items())
    return f"be {' and '.join(words)}"


def flag_of(one: Field[Any]) -> str:
    """The long flag of an option."""
    flag: str | None = one.metadata["flag"]
    return flag.split()[-1] if flag else f"--{one.name.replace('_', '-')}"


# The command line


def flags(*groups: type[Options]) -> dict[str, str]:
    """How the command line states each option of some groups."""
    return {
        one.name: group.RARE.format(one.name) if one.metadata["rare"] else flag_of(one)
        for group in groups
        for one in declared(group)
    }


def words_of(values: Mapping[str, Any], *groups: type[Options]) -> list[str]:
    """Options as the words of a command; one with several values is repeated.

    >>> from gazediffusion.settings import Generating
    >>> words_of({"task": "dots", "eta": 0.5, "steps": None}, Generating)
    ['--task', 'dots', '--set', 'eta=0.5']
    """
    words, known = [], flags(*groups)
    for name, value in values.items():
        flag = known[name]
        for one in value if isinstance(value, list | tuple) else [value]:
            if flag == f"--set {name}":
                words += ["--set", f"{name}={one}"]
            elif isinstance(one, bool):
                words += [flag if one else f"--no-{flag[2:]}"]
            elif one is not None:
                words += [flag, f"{one}"]
    return words


def command(
    run: Callable[..., None], begin: Callable[[Mapping[str, str]], None] = lambda flags: None
) -> Callable[..., None]:
    """A command for typer: each parameter that is a group of options becomes their flags.

    Rare options are given by `--set NAME=VALUE`. begin: called first, with how the options are
    stated.
    """
    own = signature(run, eval_str=True).parameters
    groups: dict[str, type[Options]] = {}
    options: dict[str, tuple[type[Options], Field[Any]]] = {}
    shown: list[Parameter] = []
    for name, parameter in own.items():
        group = parameter.annotation
        if not (isinstance(group, type) and issubclass(group, Options)):
            shown.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[name] = group
        for one in declared(group):
            if one.name in own or one.name in options:
                raise TypeError(f"{run.__name__}: two options are called {one.name}")
            options[one.name] = (group, one)
            if not one.metadata["rare"]:
                shown.append(_flag(group, one))
    words = flags(*groups.values())
    rare = {name: one for name, one in options.items() if words[name] == f"--set {name}"}

    def call(**given: Any) -> None:
        begin(words)
        for text in given.pop("rarely", None) or ():
            name, _, value = text.partition("=")
            if name not in rare:
                raise GazeError(f"there is no `set` {name!r}", remedy=suggestion(name, list(rare)))
            given[name] = _value_of(*rare[name], value)
        made = {
            name: group(**{k: given.pop(k) for k in flags(group) if given.get(k) not in (None, [])})
            for name, group in groups.items()
        }
        run(**{name: value for name, value in given.items() if name in own}, **made)

    call.__name__, call.__doc__ = run.__name__, run.__doc__
    listed = sorted([*shown, *_rarely(rare)], key=_place)
    call.__signature__ = Signature(listed)  # type: ignore[attr-defined]
    return call


def _place(parameter: Parameter) -> int:
    """Where the panel of a parameter stands in the help: main options first."""
    panel = parameter.annotation.__metadata__[0].rich_help_panel
    return _PANELS.index(panel) if panel in _PANELS else 0


def _rarely(rare: Mapping[str, Any]) -> list[Parameter]:
    """The option that gives rare ones; none without any."""
    import typer

    about = f"A rarer option, NAME=VALUE; repeatable: {', '.join(sorted(rare))}."
    stated = typer.Option("--set", help=about, rich_help_panel="Rare", show_default=False)
    kind = Annotated[list[str] | None, stated]
    named = Parameter("rarely", Parameter.KEYWORD_ONLY, default=None, annotation=kind)
    return [named] if rare else []


def _flag(group: type[Options], one: Field[Any]) -> Parameter:
    """An option as a parameter that typer understands."""
    import typer

    kind, is_list = _kind_of(group, one)
    names = (one.metadata["flag"] or flag_of(one)).split()
    default = None if one.default == () else one.default
    if kind is bool and default is not False:
        names = [f"{names[-1]}/--no-{names[-1][2:]}"]
    stated = typer.Option(
        *names,
        help=one.metadata["help"],
        envvar=one.metadata["envvar"],
        rich_help_panel=one.metadata["panel"] or vars(owner_of(group, one)).get("PANEL"),
        show_default=default not in (None, False, ""),
    )
    many = list[kind] | None if is_list else kind | None  # type: ignore[valid-type]
    return Parameter(
        one.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[many, stated]
    )


def _kind_of(group: type[Options], one: Field[Any]) -> tuple[type, bool]:
    """The type of an option's values on the command line, and whether it takes several."""
    hint = one.metadata["kind"] or hint_of(group, one)
    kind = _without_none(hint)
    if choices_of(kind):
        return str, False
    is_list = get_origin(kind) is tuple
    return get_args(kind)[0] if is_list else kind, is_list


def _value_of(group: type[Options], one: Field[Any], text: str) -> Any:
    """The value of a rare option that is given as text."""
    kind, is_list = _kind_of(group, one)
    try:
        if kind is bool:
            return {"true": True, "yes": True, "false": False, "no": False}[text.lower()]
        return tuple(map(kind, text.split(","))) if is_list else kind(text)
    except (ValueError, KeyError) as error:
        raise GazeError(f"`{one.name}` must be of type {kind.__name__}, not {text!r}") from error


# The web


def request_field(group: type[Options], name: str, **more: Any) -> Any:
    """An option as a field of a pydantic model: default, help, bounds and choices.

    Bounds and choices stand in its schema; the library checks them, so that a request is refused in
    the same words as a call. more: of `pydantic.Field`, instead of the option's.
    """
    from pydantic import Field

    one = next(option for option in declared(group) if option.name == name)
    bounds = one.metadata["bounds"].items()
    rules = {_IN_JSON[bound]: value for bound, value in bounds if math.isfinite(value)}
    rules |= {"enum": list(choices)} if (choices := choices_of(hint_of(group, one))) else {}
    about = re.sub(r"\[/?bold\]", "", one.metadata["help"])
    given: dict[str, Any] = {
        "default": one.default,
        "description": about,
        "json_schema_extra": rules or None,
    }
    return Field(**given | more)
