"""Run the gRPC Python generator that ships inside grpcio-tools as a plugin of its own, for buf."""

import pathlib
import sys
import tempfile

from google.protobuf import descriptor_pb2
from google.protobuf.compiler import plugin_pb2
from grpc_tools import protoc


def main() -> None:
    request = plugin_pb2.CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    features = plugin_pb2.CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    response = plugin_pb2.CodeGeneratorResponse(supported_features=features)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "out")
        out.mkdir()
        descriptors = pathlib.Path(folder, "descriptors.binpb")
        files = descriptor_pb2.FileDescriptorSet(file=request.proto_file)
        descriptors.write_bytes(files.SerializeToString())
        arguments = [f"--descriptor_set_in={descriptors}", f"--grpc_python_out={out}", *request.file_to_generate]
        if protoc.main(["protoc", *arguments]):
            response.error = "the grpc_python generator failed"
        for path in sorted(out.rglob("*.py")):
            response.file.add(name=path.relative_to(out).as_posix(), content=path.read_text())
    sys.stdout.buffer.write(response.SerializeToString())


main()
