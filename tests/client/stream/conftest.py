"""One provider and one HTTP client a test."""

from collections.abc import AsyncIterator

import httpx
import pytest

from client.stream.provider import Provider, provider


@pytest.fixture
async def served() -> AsyncIterator[Provider]:
    async with provider() as made:
        yield made


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    # Made without certificates: to load them takes longer than a whole test.
    async with httpx.AsyncClient(verify=False) as made:
        yield made
