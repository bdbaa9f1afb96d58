"""The shared vectors hold, in any order of arrival."""

import json
import random

import pytest
from fold_vectors import DIRECTORY, SCENARIOS, path_of, vector
from google.protobuf.json_format import ParseDict

from compass.fold import fold, view_to_dict
from compass.v1 import compass_pb2 as pb


@pytest.mark.parametrize("path", sorted(DIRECTORY.glob("*.json")), ids=lambda path: path.stem)
def test_a_vector_gives_its_view_in_any_order(path):
    written = json.loads(path.read_text())
    frames = [ParseDict(frame, pb.AgentSessionFrame()) for frame in written["frames"]]

    assert view_to_dict(fold(frames)) == written["view"]
    for seed in range(5):
        random.Random(seed).shuffle(frames)
        assert view_to_dict(fold(frames)) == written["view"]


def test_every_scenario_is_written_as_it_is():
    written = {path.name: json.loads(path.read_text()) for path in DIRECTORY.glob("*.json")}

    assert written == {path_of(scenario).name: vector(scenario) for scenario in SCENARIOS}
