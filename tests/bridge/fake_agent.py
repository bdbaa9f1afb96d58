"""A scripted agent that speaks pi's rpc lines. Its script is JSON: by the text of a prompt, what becomes of it.

`python fake_agent.py [--mode rpc] SCRIPT`, where SCRIPT is a JSON object:

- `on`: text of a prompt -> list of steps; `"*"` stands for any other. Without it, every prompt is answered.
- `greets`: say `ready` first, as oh-my-pi does.
- `pause_s`: how long an answer takes.
- `says`: lines that are written at the start.
- `ignores_sigterm`: it must be killed.
- `garbles`: number of the answer to get_state that is written behind a word without a line end.

Steps: `answer` (a whole turn), `slow` (a turn that waits for an abort), `drop` (accept and forget), `drop once`,
`refuse`, `refuse once`, `hang` (never say anything again), `die` (exit code 3 with a word on stderr), `expand` (another
text in the user message), `huge` (a line of 3 MB), `dialog` (ask, and answer once the dialog is closed), `dead`
(kill -9 of itself), `odd` (a line that is no JSON), `vast` (a user message of 17 MB), `mute` (close the output and live
on), `leave` (end, with a child that holds the output open), `compact` (a compaction that ends at a `continue` file),
`settle` (deal with it by an extension's command).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

script = json.loads(sys.argv[-1]) if sys.argv[-1].startswith("{") else {}
lock = threading.Lock()
aborted = threading.Event()
answered = threading.Event()
state = {"isStreaming": False, "isCompacting": False, "pendingMessageCount": 0}
steers: list[str] = []
seen: dict[str, int] = {}
turns = threading.Lock()


def say(message):
    with lock:
        text = message if isinstance(message, str) else json.dumps(message)
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def user(text):
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    say({"type": "message_start", "message": message})
    say({"type": "message_end", "message": message})


def assistant(text, stop_reason="stop", **more):
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": stop_reason, **more}
    say({"type": "message_end", "message": message})


def delta(text):
    say({"type": "message_update", "assistantMessageEvent": {"type": "text_delta", "contentIndex": 0, "delta": text}})


def begin(text):
    state["isStreaming"] = True
    say({"type": "agent_start"})
    user(text)
    say({"type": "message_start", "message": {"role": "assistant", "content": []}})


def end():
    say({"type": "agent_end", "messages": []})
    state["isStreaming"] = False


def answer(text, shown=None):
    begin(shown or text)
    delta(f"you said {text}")
    time.sleep(script.get("pause_s", 0))
    while steers:
        assistant(f"you said {text}")
        user(steers.pop(0))
        say({"type": "message_start", "message": {"role": "assistant", "content": []}})
    assistant(f"you said {text}")
    end()


def slow(text):
    aborted.clear()
    begin(text)
    delta("half an ans")
    deadline = time.monotonic() + 30
    while not aborted.wait(0.02) and time.monotonic() < deadline:
        while steers:
            user(steers.pop(0))
    assistant("half an ans", "aborted")
    end()


def ask(text):
    begin(text)
    answered.clear()
    say({"type": "extension_ui_request", "id": "d1", "method": "confirm", "title": "Really?"})
    answered.wait(30)
    delta("closed")
    assistant("closed")
    end()


def compact(text):
    state["isCompacting"] = True
    say({"type": "compaction_start", "reason": "threshold"})
    while not os.path.exists(script["continue"]):
        time.sleep(0.02)
    state["isCompacting"] = False
    say({"type": "compaction_end", "reason": "threshold"})
    answer(text)


def run(command):
    text = command["message"]
    seen[text] = seen.get(text, 0) + 1
    steps = script.get("on", {})
    step = steps.get(text, steps.get("*", "answer"))
    accepted = {"id": command.get("id"), "type": "response", "command": "prompt", "success": True}
    refused = {**accepted, "success": False, "error": "Agent is already processing."}
    if step.endswith(" once"):
        step = step.removesuffix(" once") if seen[text] == 1 else "answer"
    if state["isStreaming"] and command.get("streamingBehavior") == "steer":
        steers.append(text)
        say(accepted)
        return
    if step == "compact":
        compact_then_accept(text, accepted)
        return
    if step == "refuse" or state["isStreaming"]:
        say(refused)
        return
    if step == "hang":
        return
    if step == "die":
        print("fatal: no more memory, key sk-proj-abcdefghijklmnopqrstuvwxyz123456", file=sys.stderr, flush=True)
        os._exit(3)
    if step == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    say(accepted)
    if step in {"drop", "settle"}:
        return
    if step == "mute":
        with lock:  # for ever: what it would say has nowhere to go
            os.close(1)
            time.sleep(60)
    if step == "leave":
        subprocess.Popen(["sleep", "30"], start_new_session=True)
        os._exit(0)
    with turns:
        act(step, text)


def compact_then_accept(text, accepted):
    with turns:
        compact(text)
        say(accepted)


def act(step, text):
    match step:
        case "slow":
            slow(text)
        case "expand":
            answer(text, f"expanded: {text}")
        case "dialog":
            ask(text)
        case "huge":
            say({"type": "message_start", "message": {"role": "user", "content": "x" * 3_000_000}})
            say({"type": "agent_end"})
        case "vast":
            answer(text, "x" * 17_000_000)
        case "odd":
            say("this is no JSON")
            answer(text)
        case _:
            answer(text)


def main():
    if script.get("ignores_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if script.get("greets"):
        say({"type": "ready", "protocolVersion": 1, "supportedProtocolVersions": [1, 2]})
    for line in script.get("says", []):
        say(line)
    for line in sys.stdin:
        command = json.loads(line)
        answer_to = {"id": command.get("id"), "type": "response", "command": command["type"], "success": True}
        match command["type"]:
            case "prompt":
                threading.Thread(target=run, args=(command,), daemon=True).start()
            case "abort":
                aborted.set()
                say(answer_to)
            case "get_state":
                seen["get_state"] = seen.get("get_state", 0) + 1
                if seen["get_state"] == script.get("garbles"):
                    sys.stdout.write("debug: ")
                say({**answer_to, "data": {**state, "pendingMessageCount": len(steers)}})
            case "get_commands":
                settled = [text[1:] for text, step in script.get("on", {}).items() if step == "settle"]
                say({**answer_to, "data": {"commands": [{"name": each, "source": "extension"} for each in settled]}})
            case "extension_ui_response":
                answered.set()
            case _:
                say(answer_to)


main()
