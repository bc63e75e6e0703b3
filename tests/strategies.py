"""Hypothesis strategies for every record, read off its schema.

`records(T)` draws each field from its annotation and constraints; where fields depend on each
other, an entry of `REPAIRS` makes a drawn set of fields consistent.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from hypothesis import reject
from hypothesis import strategies as st
from pydantic import AfterValidator, ValidationError
from pydantic.fields import FieldInfo

from schemas.attempt import Attempt, Grade, Termination, Tokens, Verdict
from schemas.base import Record
from schemas.config import CycleConfig, DrawConfig
from schemas.curriculum import Arm
from schemas.difficulty import Posterior
from schemas.screening import ReviewDecision
from schemas.task import Environment
from schemas.tool import ToolHome, ToolSpec
from schemas.training import RlTrajectory

R = TypeVar("R", bound=Record)
Fields = dict[str, Any]

MOST = 2**63 - 1
"""The largest whole number of a column."""


@cache
def records(record_type: type[R]) -> st.SearchStrategy[R]:
    """Any valid record of `record_type`."""
    fields = {
        name: _values(field.annotation, tuple(field.metadata))
        for name, field in record_type.model_fields.items()
    }

    def build(drawn: Fields) -> R:
        try:
            return record_type(**REPAIRS.get(record_type, dict)(drawn))
        except ValidationError:
            reject()

    return st.fixed_dictionaries(fields).map(build)


def _values(annotation: Any, metadata: tuple[Any, ...] = ()) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner = (item.metadata if isinstance(item, FieldInfo) else [item] for item in arguments[1:])
        return _values(arguments[0], metadata + tuple(part for parts in inner for part in parts))
    if origin in (Union, UnionType):
        return st.one_of([_values(member, metadata) for member in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        least = _constraint(metadata, "min_length") or 0
        return st.lists(_values(arguments[0]), min_size=least, max_size=least + 2).map(tuple)
    if origin is Mapping:
        return st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=2)
    if issubclass(annotation, Record):
        return st.deferred(lambda: records(annotation))
    return _scalars(annotation, metadata)


def _scalars(annotation: type, metadata: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    least, most = _constraint(metadata, "ge"), _constraint(metadata, "le")
    above = _constraint(metadata, "gt")
    if annotation is NoneType:
        return st.none()
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(-MOST if least is None else least, MOST if most is None else most)
    if annotation is float:
        bounds: Fields = {"min_value": least, "max_value": most}
        if above is not None:
            bounds |= {"min_value": above, "exclude_min": True}
        return st.floats(**bounds, allow_nan=False, allow_infinity=False)
    return _texts(metadata)


def _texts(metadata: tuple[Any, ...]) -> st.SearchStrategy[str]:
    pattern = _constraint(metadata, "pattern")
    if pattern is not None:
        # `$` would let a line break through, which pydantic does not.
        return st.from_regex(pattern.removesuffix("$") + r"\Z")
    if any(isinstance(item, AfterValidator) for item in metadata):
        return st.text("abcé _-'", min_size=1, max_size=9)
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def _constraint(metadata: tuple[Any, ...], name: str) -> Any:
    return next((getattr(item, name) for item in metadata if hasattr(item, name)), None)


def _tokens(fields: Fields) -> Fields:
    count = min(len(fields["completion"]), len(fields["logprobs"]))
    return {
        "prompt": fields["prompt"],
        "completion": fields["completion"][:count],
        "logprobs": tuple(-abs(value) for value in fields["logprobs"][:count]),
    }


def _grade(fields: Fields) -> Fields:
    if not fields["checks"]:
        return fields | {"verdict": Verdict.UNGRADED}
    if fields["verdict"] is Verdict.UNGRADED:
        return fields
    passed = all(check.passed for check in fields["checks"])
    return fields | {"verdict": Verdict.PASSED if passed else Verdict.FAILED}


def _attempt(fields: Fields) -> Fields:
    if fields["infra"] is not None:
        grade = Grade(verdict=Verdict.UNGRADED, grader_version="1")
        return fields | {"grade": grade}
    if fields["termination"] is Termination.INFRASTRUCTURE:
        return fields | {"termination": Termination.SUBMITTED}
    return fields


def _environment(fields: Fields) -> Fields:
    files = {file.path: file for file in fields["files"]}
    image = None if fields["image"] is None else "base@sha256:" + fields["image"]
    absolute = {
        "workdir": f"/{fields['workdir']}",
        "folders": tuple(f"/{folder}" for folder in fields["folders"]),
    }
    return fields | {"files": tuple(files.values()), "image": image} | absolute


def _tool_spec(fields: Fields) -> Fields:
    answered = fields["home"] in (ToolHome.SANDBOX, ToolHome.HOST)
    return fields | {"program": f"p{fields['program']}" if answered else ""}


def _draw_config(fields: Fields) -> Fields:
    halves = {name: fields[name] / 2 for name in ("rehearsal", "exploration")}
    return fields | halves | {"arms": (Arm.OLD_UNIFORM, Arm.NEW_UNIFORM)}


def _cycle_config(fields: Fields) -> Fields:
    rows = min(fields["train"].rows, fields["draw"].attempts)
    return fields | {"train": fields["train"].model_copy(update={"rows": rows})}


def _rl_trajectory(fields: Fields) -> Fields:
    action = Tokens(prompt=(1,), completion=(2,), logprobs=(-0.1,))
    return fields | {"segments": (action, *fields["segments"])}


REPAIRS: Mapping[type[Record], Callable[[Fields], Fields]] = {
    Tokens: _tokens,
    Grade: _grade,
    Attempt: _attempt,
    Environment: _environment,
    ToolSpec: _tool_spec,
    Posterior: lambda fields: fields | {"passed": min(fields["passed"], fields["graded"])},
    DrawConfig: _draw_config,
    CycleConfig: _cycle_config,
    RlTrajectory: _rl_trajectory,
    # Part of its key, where DuckDB makes no difference between 0.0 and -0.0.
    ReviewDecision: lambda fields: fields | {"decided_at": fields["decided_at"] + 0.0},
}
