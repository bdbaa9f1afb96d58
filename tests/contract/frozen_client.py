"""A deployed client: reads SubscribeAgentSession with stubs of the frozen file alone. Run with them on PYTHONPATH.

    frozen_client.py HOST:PORT SESSION

Prints each frame as one line of JSON, then a line that says how the stream ended.
"""

import json
import sys

import grpc
from google.protobuf import json_format

from compass.v1 import compass_pb2, compass_pb2_grpc


def main(target: str, session_id: str) -> None:
    assert "seq" not in compass_pb2.AgentSessionFrame.DESCRIPTOR.fields_by_name, "these are not the frozen stubs"
    with grpc.insecure_channel(target) as channel:
        stub = compass_pb2_grpc.CompassServiceStub(channel)
        request = compass_pb2.SubscribeAgentSessionRequest(session_id=session_id)
        call = stub.SubscribeAgentSession(request, timeout=10)
        for frame in call:
            print(json.dumps(json_format.MessageToDict(frame, preserving_proto_field_name=True)))
        print(json.dumps({"code": call.code().name}))


main(*sys.argv[1:])
