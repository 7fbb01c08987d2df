"""The output a run must submit: a type or a JSON Schema, shown to the model and used to validate what it sends.

`make_output` takes a JSON Schema, or anything pydantic can describe: models, dataclasses, TypedDict, unions,
list[int], Literal, … `Output.parameters` is what the model is shown, `Output.validate` what a submission must
pass (rules S1, S2). A valid value can still be wrong (rule S10).
"""

from __future__ import annotations

import importlib
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from typing_extensions import TypeForm

from handrail.errors import did_you_mean
from handrail.events import FieldError
from handrail.messages import ToolCall, clean
from handrail.output._json_schema import (
    NOT_ALLOWED,
    VALUE,
    SchemaValidator,
    brief,
    dotted,
    is_plain_object,
    json_hint,
    shorten,
    shown,
)
from handrail.output._json_schema import OutputError as OutputError
from handrail.output._strict_json import inner, read, without_bad_escapes

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

MAX_ERRORS = 20


class InvalidSubmission(Exception):
    """An invalid submission. `errors` tells the model what is wrong, field by field."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        found = list(dict.fromkeys(errors))
        if len(found) > MAX_ERRORS:
            found[MAX_ERRORS:] = [FieldError("", f"and {len(found) - MAX_ERRORS} more errors")]
        self.errors: tuple[FieldError, ...] = tuple(found)
        super().__init__("; ".join(f"{e.path}: {e.message}" if e.path else e.message for e in found))


class Output(ABC, Generic[T]):
    """The shape of an answer.

    `parameters` is a JSON Schema with an object at its root. `wrapped` means that the answer is under the
    single property `value`, because its own schema is not of `type: object` (rule S1).
    """

    wrapper: Final = VALUE
    """The name of that property."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.parameters: dict[str, Any] = shown(schema)
        self.wrapped = not is_plain_object(schema)

    def validate(self, call: ToolCall) -> T:
        """The answer that `call` holds, validated from its raw JSON text, strictly (rule S2).

        Raises InvalidSubmission whatever goes wrong: text that does not parse, a value that is not an object, a wrong
        field, a validator that raises.
        """
        raw = without_bad_escapes(call.raw)
        try:
            document = read(raw)
            if call.error is not None:
                raise ValueError(shorten(call.error))
        except ValueError as error:
            raise InvalidSubmission([FieldError("", str(error))]) from None
        if not self.wrapped:
            return self._validated(raw, document, ())
        errors = [FieldError(dotted((k,)), NOT_ALLOWED) for k in document if k != VALUE]
        if VALUE not in document:
            errors.insert(0, FieldError(VALUE, "Field required"))
        if errors:
            raise InvalidSubmission(errors)
        return self._validated(inner(raw), document[VALUE], (VALUE,))

    def _validated(self, raw: str, document: Any, at: tuple[str, ...]) -> T:
        try:
            return self._check(raw, document, at)
        except InvalidSubmission:
            raise
        except Exception as error:
            raise InvalidSubmission(
                [FieldError(dotted(at), f"Could not be checked: {_message_of(error)}")]
            ) from error

    @abstractmethod
    def _check(self, raw: str, document: Any, at: tuple[str, ...]) -> T:
        """The answer in the JSON text `raw`, parsed as `document`, which is at the path `at`."""

    @abstractmethod
    def to_json(self, value: T) -> Any:
        """`value` as plain data that JSON can hold: for events and for stdout."""


class _SchemaOutput(Output[Any]):
    """An answer described by a JSON Schema: the parsed JSON itself."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._validator = SchemaValidator(schema)
        super().__init__(self._validator.schema)

    def _check(self, raw: str, document: Any, at: tuple[str, ...]) -> Any:
        errors = list(self._validator.errors(document, at))
        if errors:
            raise InvalidSubmission(sorted(errors, key=lambda e: e.path))
        return document

    def to_json(self, value: Any) -> Any:
        return value


class _TypeOutput(Output[T]):
    """An answer described by a type that pydantic knows."""

    def __init__(self, adapter: TypeAdapter[T], schema: Mapping[str, Any]) -> None:
        self._adapter = adapter
        super().__init__(schema)

    def _check(self, raw: str, document: Any, at: tuple[str, ...]) -> T:
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(raw, strict=True)
        except ValidationError as error:
            found = error.errors(include_url=False, include_context=False)
            raise InvalidSubmission(_field_error(e, document, at) for e in found) from None

    def to_json(self, value: T) -> Any:
        """`value` as pydantic serialises it, by alias. What JSON cannot represent becomes text."""
        try:
            return json.loads(self._adapter.dump_json(value, by_alias=True, warnings=False, fallback=str))
        except Exception:
            return _text(value) or type(value).__name__


@overload
def make_output(type_: Mapping[str, Any]) -> Output[Any]: ...
@overload
def make_output(type_: TypeForm[T]) -> Output[T]: ...
def make_output(type_: Any) -> Output[Any]:
    """The output for a type or a JSON Schema.

    Raises OutputError (a ValueError), for a type that cannot be described as JSON, an invalid schema, a
    reference to something outside the schema.
    """
    if isinstance(type_, Mapping):
        return _SchemaOutput(type_)
    return _type_output(type_)


def _type_output(type_: Any) -> Output[Any]:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        """Does not warn about defaults that JSON cannot represent: leaving them out is harmless."""

        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    name = getattr(type_, "__name__", None) or str(type_)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(type_)
        return _TypeOutput(adapter, adapter.json_schema(schema_generator=Quiet))
    except PydanticUserError as error:
        if error.code == "typed-dict-version":
            raise OutputError(
                "A TypedDict of the module typing cannot be validated before Python 3.12. "
                "Import TypedDict from typing_extensions instead."
            ) from None
        raise OutputError(f"{name} cannot be the type of an answer: {_first_line(error.message)}") from None
    except Exception as error:
        raise OutputError(
            f"{name} cannot be the type of an answer: {_first_line(_message_of(error))}"
        ) from error


def load_output(spec: str, cwd: Path) -> Output[Any]:
    """The output that `FILE.json` or `module:Type` names, as the command line takes it.

    Paths and modules are resolved from `cwd`. Raises OutputError that says what is wrong, where, and what to do.
    """
    path = cwd / spec
    if spec.endswith(".json") or path.is_file():
        return _from_file(path)
    module, colon, name = spec.partition(":")
    if not (colon and module and name):
        raise OutputError(f"'{spec}' is no schema. Give a JSON Schema file or a type as module:Type.")
    if module.endswith(".py"):
        raise OutputError(f"'{spec}' names a file. Give the module without .py: {Path(module).stem}:{name}")
    try:
        return make_output(_from_module(module, name, cwd))
    except OutputError as error:
        raise OutputError(f"{spec}: {error}") from error


def _from_file(path: Path) -> Output[Any]:
    try:
        schema = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise OutputError(
            f"There is no schema file {path}. Give a JSON Schema file or module:Type."
        ) from None
    except OSError as error:
        raise OutputError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise OutputError(f"{path} is not JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise OutputError(f"{path} holds {brief(schema)}; a JSON Schema is an object.")
    try:
        return make_output(schema)
    except OutputError as error:
        raise OutputError(f"{path}: {error}") from error


def _from_module(module: str, name: str, cwd: Path) -> Any:
    if str(cwd) not in sys.path:
        sys.path.insert(0, str(cwd))  # stays: the module may import its neighbours later
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:
        raise OutputError(
            f"The module {module} cannot be imported from {cwd}: {_message_of(error)}."
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            where = getattr(found, "__file__", None) or getattr(found, "__name__", module)
            public = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
            raise OutputError(f"There is no {part} in {where}.{did_you_mean(part, public[:50])}")
        found = getattr(found, part)
    return found


# Error messages.

_PREFIXES = ("Value error, ", "Assertion failed, ")
_OUR_OWN_TAGS = ("function-", "lax-or-strict", "json-or-python", "definition-ref")
_NO_INPUT = ("missing", "value_error", "assertion_error", "extra_forbidden")


def _field_error(error: Any, document: Any, at: tuple[str, ...]) -> FieldError:
    """An error of pydantic. Union members that it puts in the path are named in the message instead."""
    path: list[str | int] = list(at)
    members: list[str] = []
    node = document
    loc = error["loc"]
    for n, part in enumerate(loc):
        if _leads_on(node, part):
            node = node[part]
        elif not (error["type"] == "missing" and n == len(loc) - 1):
            if part != "[key]" and not str(part).startswith(_OUR_OWN_TAGS):
                members.append(str(part))
            continue
        path.append(part)
    words = error["msg"]
    for prefix in _PREFIXES:
        words = words.removeprefix(prefix)
    if error["type"] not in _NO_INPUT:
        words += f", not {brief(error['input'])}"
        words += json_hint(error["input"])
    if members:
        words = f"As {' '.join(members)}: {words}"
    return FieldError(dotted(path), shorten(clean(words)))


def _leads_on(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


def _message_of(error: BaseException) -> str:
    """The type and the message of an exception."""
    words = _text(error)
    return shorten(f"{type(error).__name__}: {words}" if words else type(error).__name__)


def _text(value: object) -> str:
    """`str(value)`, or an empty string if that raises."""
    try:
        return clean(str(value))
    except Exception:
        return ""


def _first_line(text: str) -> str:
    """The first sentence of pydantic's message; the rest is about its own settings."""
    line = text.strip().splitlines()[0]
    return shorten(line.partition(". ")[0].rstrip(".") + ".")
