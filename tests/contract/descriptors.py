"""Descriptors spelled the way the tables of `contract.wire` spell them."""

from collections.abc import Iterable

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor, MethodDescriptor

_SCALARS = {
    FieldDescriptor.TYPE_BOOL: "bool",
    FieldDescriptor.TYPE_INT32: "int32",
    FieldDescriptor.TYPE_INT64: "int64",
    FieldDescriptor.TYPE_STRING: "string",
    FieldDescriptor.TYPE_UINT64: "uint64",
}


def spell_fields(fields: Iterable[FieldDescriptor]) -> dict[int, str]:
    return {field.number: spell_field(field) for field in fields}


def spell_field(field: FieldDescriptor) -> str:
    return " ".join(filter(None, (_label(field), _type(field), field.name)))


def _label(field: FieldDescriptor) -> str:
    if field.is_repeated:
        return "repeated"
    oneof = field.containing_oneof
    if oneof is None:
        return ""
    is_synthetic = oneof.name == f"_{field.name}"  # how descriptors show `optional`
    return "optional" if is_synthetic else f"oneof {oneof.name}"


def _type(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return field.message_type.name
    return field.enum_type.name if field.enum_type is not None else _SCALARS[field.type]


def spell_enum(enum: EnumDescriptor) -> str:
    """Spell values in order of number, refusing a number that is not its place or a name without the prefix."""
    prefix = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in enum.name)[1:] + "_"
    values = sorted(enum.values, key=lambda value: value.number)
    assert [value.number for value in values] == list(range(len(values)))
    assert all(value.name.startswith(prefix) for value in values)
    return " ".join(value.name.removeprefix(prefix) for value in values)


def spell_rpc(method: MethodDescriptor) -> str:
    request = "stream " * method.client_streaming + method.input_type.name
    response = "stream " * method.server_streaming + method.output_type.name
    return f"{request} -> {response}"
