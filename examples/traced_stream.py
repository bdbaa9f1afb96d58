"""An answer from a provider, printed here and traced: python examples/traced_stream.py openai|anthropic|httpx QUESTION.

Keys and, for servers other than the providers' own, base urls come from the variables that the SDKs read:
OPENAI_API_KEY and OPENAI_BASE_URL, ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL. COMPASS_SERVER says where the trace goes.
Exits 1 if the answer did not come whole.
"""

import asyncio
import os
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anthropic
import openai

import compass
from compass.stream import ChunkStream, ModelStreamError, guard, open_stream, traced

# The SDKs' own retries are off: they would send requests that nobody sees. `compass.stream.retrying` shows each one.


@asynccontextmanager
async def ask_openai(question: str) -> AsyncIterator[ChunkStream]:
    """Ask through openai's SDK."""
    messages = [{"role": "user", "content": question}]
    async with openai.AsyncOpenAI(max_retries=0) as sdk:
        yield guard(sdk.chat.completions.create(model="gpt-4.1-mini", messages=messages, stream=True))


@asynccontextmanager
async def ask_anthropic(question: str) -> AsyncIterator[ChunkStream]:
    """Ask through anthropic's SDK."""
    messages = [{"role": "user", "content": question}]
    async with anthropic.AsyncAnthropic(max_retries=0) as sdk:
        yield guard(sdk.messages.create(model="claude-haiku-4-5", max_tokens=1_000, messages=messages, stream=True))


@asynccontextmanager
async def ask_httpx(question: str) -> AsyncIterator[ChunkStream]:
    """Ask over plain HTTP, without an SDK."""
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    yield open_stream(
        "openai-chat",
        url=f"{base}/chat/completions",
        headers={"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
        json={"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": question}], "stream": True},
    )


WAYS: dict[str, Callable[[str], AbstractAsyncContextManager[ChunkStream]]] = {
    "openai": ask_openai,
    "anthropic": ask_anthropic,
    "httpx": ask_httpx,
}


async def main(way: str, question: str) -> int:
    """Ask, print and trace. Returns the exit code."""
    session = f"{way}-{uuid.uuid4().hex[:8]}"
    print(f"session {session}", file=sys.stderr)
    async with compass.connect() as client, client.publish(session, agent_name="example") as publisher:
        try:
            async with WAYS[way](question) as stream, traced(stream, publisher, prompt=question) as chunks:
                async for chunk in chunks:
                    print(chunk.text, end="", flush=True)
        except ModelStreamError as error:
            # What was printed is a partial answer. The trace has it, marked as cut off, with the error beside it.
            print(f"\n{error.category.name}: {error.message} ({error.advice})", file=sys.stderr)
            return 1
    print()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in WAYS:
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2])))
