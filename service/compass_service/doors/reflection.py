"""Server reflection, v1 and v1alpha. grpcio serves v1alpha only; v1 is the same messages under another package name."""

from collections.abc import Sequence

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, text_format
from grpc_reflection.v1alpha import _async as aio_reflection
from grpc_reflection.v1alpha import reflection, reflection_pb2

V1ALPHA_SERVICE = reflection.SERVICE_NAME
V1_SERVICE = "grpc.reflection.v1.ServerReflection"


def add_to_server(server: grpc.aio.Server, service_names: Sequence[str]) -> None:
    """Serve reflection of the named services, and of both reflection services themselves."""
    _describe_v1()
    names = (*service_names, V1ALPHA_SERVICE, V1_SERVICE)
    reflection.enable_server_reflection(names, server)
    handler = grpc.stream_stream_rpc_method_handler(
        aio_reflection.ReflectionServicer(names).ServerReflectionInfo,
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
