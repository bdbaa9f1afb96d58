"""An agent with the protocol that examples/line_dialect.py describes."""

import json
import sys


def say(word, **more):
    print(json.dumps({"is": word, **more}), flush=True)


say("up")
is_busy = False
for line in sys.stdin:
    command = json.loads(line)
    ref = command["ref"]
    match command["do"]:
        case "how":
            say("busy" if is_busy else "idle", ref=ref)
        case "stop":
            say("ok", ref=ref)
            if is_busy:
                is_busy = False
                say("stopped")
        case "ask":
            say("ok", ref=ref)
            is_busy = True
            say("asked", text=command["text"])
            say("says", text="a part ")
            if command["text"] != "slow":
                say("says", text="and the rest")
                is_busy = False
                say("done")
