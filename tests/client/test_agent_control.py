"""The control stream of an agent against servers that say things again, and producers that say returns again."""

import compass
from client.scripted import Pushes, Stream, fail, hang, running
from compass.v1 import agent_gateway_pb2 as pb


class Gateway(Pushes):
    """A push stream that behaves, and a control stream that plays one script per call."""

    def __init__(self, *controls, pushes=(Stream.serve,)):
        super().__init__(*pushes)
        self.controls = list(controls)
        self.requests = []

    async def Control(self, request, context):  # noqa: N802 - the rpc's name
        script = self.controls[min(len(self.requests), len(self.controls) - 1)]
        self.requests.append(request)
        await script(context)


def say(*responses, then=hang):
    async def script(context):
        for response in responses:
            await context.write(response)
        await then(context)

    return script


def prompt(control_seq, prompt_id):
    return pb.ControlResponse(control_seq=control_seq, prompt=pb.ControlPrompt(prompt_id=prompt_id, text=prompt_id))


def abort(control_seq):
    return pb.ControlResponse(control_seq=control_seq, abort=pb.ControlAbort())


async def taken(gateway, num_items):
    """Read so many control items."""
    async with running(gateway) as address, compass.connect(address) as client, client.agent("s") as agent:
        controls = agent.control()
        items = [await anext(controls) for _ in range(num_items)]
        await controls.aclose()
    return items


async def test_what_comes_again_after_a_cut_is_taken_once_and_the_server_is_told_how_far_it_came():
    gateway = Gateway(
        say(prompt(1, "p1"), abort(2), then=fail("UNAVAILABLE", "DRAINING")),
        say(prompt(1, "p1"), abort(2), prompt(3, "p2")),
    )
    items = await taken(gateway, 3)

    assert [type(item) for item in items] == [compass.Prompt, compass.Abort, compass.Prompt]
    assert [item.control_seq for item in items] == [1, 2, 3]
    assert [request.applied_control_seq for request in gateway.requests] == [0, 2]


async def test_a_prompt_that_is_held_is_not_taken_a_second_time_whatever_its_control_seq():
    gateway = Gateway(say(prompt(1, "p1"), prompt(2, "p1"), prompt(3, "p2")))
    items = await taken(gateway, 2)

    assert [item.prompt_id for item in items] == ["p1", "p2"]


async def test_a_control_stream_that_was_opened_too_early_is_opened_again():
    gateway = Gateway(fail("FAILED_PRECONDITION", "PRODUCER_NOT_ATTACHED"), say(prompt(1, "p1")))
    items = await taken(gateway, 1)

    assert [item.prompt_id for item in items] == ["p1"]


async def test_a_return_is_said_again_on_the_next_stream_with_the_handing_over_that_it_ends():
    said = []

    async def cut_after_the_return(stream):
        await stream.ack()
        said.append((await stream.read()).prompt_returned)
        await fail("UNAVAILABLE")(stream)

    async def hear_it_again(stream):
        await stream.ack()
        said.append((await stream.read()).prompt_returned)
        await stream.ack(closed=True)

    gateway = Gateway(say(prompt(4, "p1")), pushes=(cut_after_the_return, hear_it_again))
    async with running(gateway) as address, compass.connect(address) as client, client.agent("s") as agent:
        controls = agent.control()
        await (await anext(controls)).returned()
        await controls.aclose()

    assert said == [pb.PromptReturned(prompt_id="p1", control_seq=4)] * 2
