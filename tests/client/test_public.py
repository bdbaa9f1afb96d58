import compass


def test_the_public_names_are_pinned_and_sorted():
    assert sorted(compass.__all__) == compass.__all__
    assert set(compass.__all__) <= set(dir(compass))
