"""Reflection, as grpcurl and buf curl use it: every service, every message, every import, in both versions."""

import pytest
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha import reflection_pb2

from compass.v1 import compass_pb2 as pb

V1, V1ALPHA = "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"


def open_reflection(channel, service: str):
    return channel.stream_stream(
        f"/{service}/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )()


async def ask(call, **request: str):
    await call.write(reflection_pb2.ServerReflectionRequest(**request))
    return await call.read()


@pytest.mark.parametrize("version", [V1, V1ALPHA])
async def test_every_service_can_be_listed_and_described_with_every_import(serve, dial, version):
    server = await serve(channelz=True)
    call = open_reflection(dial(server.addresses[0]), version)

    listed = [service.name for service in (await ask(call, list_services="")).list_services_response.service]

    assert {V1, V1ALPHA, "compass.v1.CompassService", "compass.v1.AgentGateway", "grpc.health.v1.Health"} <= set(listed)
    assert "grpc.channelz.v1.Channelz" in listed
    for service in listed:
        answer = await ask(call, file_containing_symbol=service)
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(file)
            for file in answer.file_descriptor_response.file_descriptor_proto
        ]
        assert files, service
        names = {file.name for file in files}
        assert {name for file in files for name in file.dependency} <= names
    call.cancel()


async def test_every_message_of_the_contract_can_be_described(serve, dial):
    server = await serve()
    call = open_reflection(dial(server.addresses[0]), V1)

    for name in pb.DESCRIPTOR.message_types_by_name:
        answer = await ask(call, file_containing_symbol=f"compass.v1.{name}")
        assert answer.HasField("file_descriptor_response"), name
    call.cancel()


@pytest.mark.parametrize("member", ["AgentGateway.PushEvent", "SessionError.message"])
async def test_methods_and_fields_can_be_described(serve, dial, member):
    server = await serve()
    call = open_reflection(dial(server.addresses[0]), V1)

    answer = await ask(call, file_containing_symbol=f"compass.v1.{member}")

    assert answer.HasField("file_descriptor_response")
    call.cancel()


async def test_what_does_not_exist_is_not_found(serve, dial):
    server = await serve()
    call = open_reflection(dial(server.addresses[0]), V1)

    answer = await ask(call, file_containing_symbol="compass.v1.AgentGateway.Nothing")

    assert answer.error_response.error_code == 5
    call.cancel()


async def test_channelz_is_behind_a_flag(serve, dial):
    server = await serve()
    call = open_reflection(dial(server.addresses[0]), V1)

    listed = [service.name for service in (await ask(call, list_services="")).list_services_response.service]

    assert "grpc.channelz.v1.Channelz" not in listed
    call.cancel()
