import pytest

from compass.target import resolve


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("COMPASS_SERVER", raising=False)


@pytest.mark.parametrize("address", ["127.0.0.1:7420", "trace.example:1", "[::1]:7420", "unix:/run/compass.sock"])
def test_an_address_is_taken_as_it_is(address):
    assert resolve(address) == address


@pytest.mark.parametrize("address", ["localhost", "http://localhost:7420", "host:port", ":7420", "a b:1", "unix:"])
def test_what_is_no_address_is_refused_with_the_value(address):
    with pytest.raises(ValueError, match="HOST:PORT or unix:/PATH") as caught:
        resolve(address)
    assert address in str(caught.value)


def test_without_an_address_the_environment_decides_and_then_the_default(monkeypatch):
    assert resolve(None) == "127.0.0.1:7420"
    monkeypatch.setenv("COMPASS_SERVER", "unix:/run/c.sock")
    assert resolve(None) == "unix:/run/c.sock"
    assert resolve("other:1") == "other:1"
