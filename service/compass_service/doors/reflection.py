"""Server reflection, v1 and v1alpha. grpcio serves v1alpha only; v1 is the same messages under another package name."""

import contextlib
from collections.abc import Collection, Sequence

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import _async as aio_reflection
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

V1ALPHA_SERVICE = reflection.SERVICE_NAME
V1_SERVICE = "grpc.reflection.v1.ServerReflection"


class _Reflection(aio_reflection.ReflectionServicer):  # type: ignore[misc]
    """Finds methods and fields too: the descriptor pool knows the file of a service or message only."""

    def _file_containing_symbol(
        self,
        request: reflection_pb2.ServerReflectionRequest,
        fully_qualified_name: str,
    ) -> reflection_pb2.ServerReflectionResponse:
        found = super()._file_containing_symbol(request, fully_qualified_name)
        parent, _, member = fully_qualified_name.rpartition(".")
        if found.HasField("error_response") and member in _members(parent):
            return super()._file_containing_symbol(request, parent)
        return found


def _members(full_name: str) -> Collection[str]:
    pool = descriptor_pool.Default()
    with contextlib.suppress(KeyError):
        return pool.FindServiceByName(full_name).methods_by_name
    with contextlib.suppress(KeyError):
        return pool.FindMessageTypeByName(full_name).fields_by_name
    return ()


def add_to_server(server: grpc.aio.Server, service_names: Sequence[str]) -> None:
    """Serve reflection of the named services, and of both reflection services themselves."""
    _describe_v1()
    names = (*service_names, V1ALPHA_SERVICE, V1_SERVICE)
    servicer = _Reflection(names)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, server)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(V1_SERVICE, {"ServerReflectionInfo": handler}),),
    )


def _describe_v1() -> None:
    """Put the v1 service into the descriptor pool, so that it can be described like any other.

    Renamed in text form, since the package name also stands inside the names of types.
    """
    described = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(described)
    text = text_format.MessageToString(described).replace("v1alpha", "v1")
    descriptor_pool.Default().AddSerializedFile(
        text_format.Parse(text, descriptor_pb2.FileDescriptorProto()).SerializeToString(),
    )
