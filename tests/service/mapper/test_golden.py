"""Every recording of a real agent gives exactly the frames that were read and found right."""

import pytest

from golden import RECORDINGS, golden_path, render


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_recording_gives_its_golden_frames(recording):
    assert render(recording) == golden_path(recording).read_text(encoding="utf-8")


def test_every_golden_file_has_its_recording():
    golden = {path.name for path in golden_path(RECORDINGS[0]).parent.iterdir()}
    assert golden == {path.name for path in RECORDINGS}
