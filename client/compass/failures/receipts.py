"""Receipts: what was cut from or dropped out of a failure, added up over every hand it went through."""

from collections.abc import Mapping
from hashlib import blake2b

from google.protobuf.message import Message

from compass.failures.grammars import MAX_UINT64, integer, member
from compass.v1 import failure_pb2 as pb

FIELDS = frozenset(
    {"code", "stage", "path", "problem", "hint", "message", "field", "key", "dependencyPath", "index"},
)
"""The closed vocabulary of what a receipt may name."""

_DIGEST_BYTES = 16


def receipt_from(value: object) -> pb.FailureReceipt:
    """Read a receipt that came with a failure. Names outside the vocabulary and counts that are none are dropped."""
    members = value if isinstance(value, Mapping) else {}
    names = member(members, "truncated_fields")
    return pb.FailureReceipt(
        truncated_fields=_known(names if isinstance(names, list | tuple) else ()),
        omitted_count=_count(members, "omitted_count"),
        dropped_count=_count(members, "dropped_count"),
        serialized_bytes=_count(members, "serialized_bytes"),
        minimal_fallback=member(members, "minimal_fallback") is True,
    )


def merge_receipts(prior: pb.FailureReceipt, fresh: pb.FailureReceipt) -> pb.FailureReceipt:
    """Add a fresh receipt to a prior one: counts add up, names unite, the size is the largest, the flag stays set."""
    return pb.FailureReceipt(
        truncated_fields=_known([*prior.truncated_fields, *fresh.truncated_fields]),
        omitted_count=min(prior.omitted_count + fresh.omitted_count, MAX_UINT64),
        dropped_count=min(prior.dropped_count + fresh.dropped_count, MAX_UINT64),
        serialized_bytes=max(prior.serialized_bytes, fresh.serialized_bytes),
        minimal_fallback=prior.minimal_fallback or fresh.minimal_fallback,
    )


def digest(message: Message) -> bytes:
    """Fingerprint a failure or a run event, its whole receipt included: another cut is another digest."""
    hashed = blake2b(message.DESCRIPTOR.full_name.encode(), digest_size=_DIGEST_BYTES)
    hashed.update(b"\0" + message.SerializeToString(deterministic=True))
    return hashed.digest()


def _known(names: list[object] | tuple[object, ...]) -> list[str]:
    return sorted({name for name in names if isinstance(name, str) and name in FIELDS})


def _count(members: Mapping[str, object], name: str) -> int:
    return integer(member(members, name), minimum=0, maximum=MAX_UINT64) or 0
