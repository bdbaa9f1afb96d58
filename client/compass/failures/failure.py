"""Brings a failure that a workflow engine reports into its public form: identities whole or absent, prose bounded.

Whatever is lost on the way stands in the receipt, added to the one that the failure came with.
"""

from collections.abc import Iterable, Mapping

from compass.failures.bounds import cut_prose, readable, valid_text
from compass.failures.grammars import CODE, LOCATION, Grammar, camel, identity, integer, member
from compass.failures.receipts import merge_receipts, receipt_from
from compass.v1 import failure_pb2 as pb

MAX_FAILURE_BYTES = 32 * 1024

_IDENTITIES = {"code": CODE, "stage": CODE, "path": LOCATION}
_Message = pb.Failure | pb.FailureDiagnostic
_PROSE = ("problem", "hint", "message")
_DIAGNOSTIC_IDENTITIES = {"code": CODE} | dict.fromkeys(("path", "field", "key", "dependency_path"), LOCATION)
_DIAGNOSTIC_PROSE = ("message",)


def failure_from(reported: object) -> pb.Failure:
    """Make the public form of a failure, whatever was reported in its place.

    Takes a mapping with the documented names in snake or camel case, or a bare text. Never raises; unknown members are
    left out. The result is at most 32 KiB: one that would be larger keeps its code, stage and problem only.
    """
    members = reported if isinstance(reported, Mapping) else {"message": reported}
    losses = _Losses()
    failure = pb.Failure()
    losses.read(failure, members, _IDENTITIES, _PROSE)
    for diagnostic in _diagnostics(members, losses):
        failure.diagnostics.append(diagnostic)
    prior = receipt_from(member(members, "receipt"))
    _put_receipt(failure, prior, losses, members)
    if failure.ByteSize() > MAX_FAILURE_BYTES:
        failure = _minimal(failure, losses)
        _put_receipt(failure, prior, losses, members)
    return failure


class _Losses:
    """What is cut or dropped while one failure is read."""

    def __init__(self) -> None:
        self.receipt = pb.FailureReceipt()
        self._names: set[str] = set()

    def read(
        self,
        message: _Message,
        members: Mapping[str, object],
        identities: Mapping[str, Grammar],
        prose: Iterable[str],
    ) -> None:
        """Fill a message from members of these names."""
        for name, grammar in identities.items():
            value = member(members, name)
            if value not in (None, ""):
                self.put(message, name, identity(grammar, value))
        for name in prose:
            text, was_cut = cut_prose(member(members, name))
            setattr(message, name, text)
            if was_cut:
                self.name(name)

    def put(self, message: _Message, name: str, value: object) -> None:
        """Set an identity, or count that it was dropped."""
        if value is None:
            self.receipt.dropped_count += 1
            self.name(name)
        else:
            setattr(message, name, value)

    def omit(self, *, num_diagnostics: int) -> None:
        """Count diagnostics that are left out."""
        self.receipt.omitted_count += num_diagnostics

    def name(self, name: str) -> None:
        """Note that a field was cut or dropped."""
        self._names.add(camel(name))
        self.receipt.truncated_fields[:] = sorted(self._names)


def _diagnostics(members: Mapping[str, object], losses: _Losses) -> Iterable[pb.FailureDiagnostic]:
    for entry in _entries(members):
        diagnostic = _diagnostic(entry, losses)
        if diagnostic.ByteSize():
            yield diagnostic
        else:
            losses.omit(num_diagnostics=1)


def _entries(members: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    reported = member(members, "diagnostics")
    for entry in reported if isinstance(reported, list | tuple) else ():
        yield entry if isinstance(entry, Mapping) else {"message": entry}


def _diagnostic(members: Mapping[str, object], losses: _Losses) -> pb.FailureDiagnostic:
    diagnostic = pb.FailureDiagnostic()
    losses.read(diagnostic, members, _DIAGNOSTIC_IDENTITIES, _DIAGNOSTIC_PROSE)
    index = member(members, "index")
    if index is not None:
        losses.put(diagnostic, "index", integer(index, minimum=0))
    return diagnostic


def _minimal(failure: pb.Failure, losses: _Losses) -> pb.Failure:
    losses.omit(num_diagnostics=len(failure.diagnostics))
    for name in ("path", "hint", "message"):
        if getattr(failure, name):
            losses.name(name)
    losses.receipt.minimal_fallback = True
    return pb.Failure(code=failure.code, stage=failure.stage, problem=failure.problem)


def _put_receipt(
    failure: pb.Failure,
    prior: pb.FailureReceipt,
    losses: _Losses,
    members: Mapping[str, object],
) -> None:
    if losses.receipt.ByteSize():
        losses.receipt.serialized_bytes = _whole_size(members)
    merged = merge_receipts(prior, losses.receipt)
    if merged.ByteSize():
        failure.receipt.CopyFrom(merged)


def _whole_size(members: Mapping[str, object]) -> int:
    """Size of the failure as it was reported, in the members that are known."""
    whole = pb.Failure()
    _set_texts(whole, members, [*_IDENTITIES, *_PROSE])
    for entry in _entries(members):
        _set_texts(whole.diagnostics.add(), entry, [*_DIAGNOSTIC_IDENTITIES, *_DIAGNOSTIC_PROSE])
    return whole.ByteSize()


def _set_texts(message: _Message, members: Mapping[str, object], names: Iterable[str]) -> None:
    for name in names:
        setattr(message, name, valid_text(readable(member(members, name))))
