"""Drives a Roz session of a running daemon with a client in another language.

usage: session.py PROTO_DIR TARGET WORKING_DIR, where TARGET is `unix:PATH` or `ADDRESS:PORT`

Needs grpcio and grpcio-tools. The model must call the tool `look` three times for `look around` and then say `all seen`,
write `a.txt` and `b.txt` for `write` with the tool `write_file` of the daemon, and never stop for `!long`. Prints one line
for each thing that worked.
"""

import queue
import sys
import tempfile
from pathlib import Path

import grpc
import grpc_tools
from grpc_tools import protoc

proto_dir, target, working_dir = sys.argv[1:]
out = tempfile.mkdtemp()
common = f"{grpc_tools.__path__[0]}/_proto"
code = protoc.main(
    ["protoc", f"-I{proto_dir}", f"-I{common}", f"--python_out={out}", f"--grpc_python_out={out}", "roz/v1/agent.proto"]
)
assert code == 0, "the proto does not compile with protoc"
sys.path.insert(0, out)
from roz.v1 import agent_pb2 as pb
from roz.v1 import agent_pb2_grpc as rpc


def main():
    # grpcio sends the socket path as the authority, which HTTP/2 does not allow: github.com/hyperium/h2/pull/487
    channel = grpc.insecure_channel(target, options=[("grpc.default_authority", "localhost")])
    requests = queue.Queue()
    metadata = [("authorization", "Bearer roz_sk_test")]
    frames = rpc.AgentServiceStub(channel).StreamSession(iter(requests.get, None), timeout=60, metadata=metadata)
    say = lambda **request: requests.put(pb.SessionRequest(**request))

    look = pb.ToolSchema(name="look", description="looks", timeout_ms=30000, category=pb.TOOL_CATEGORY_PURE)
    look.parameters_schema.update({"type": "object", "properties": {"at": {"type": "string"}}})
    say(start=pb.StartSession(tools=[look]))
    started = next(frames).session_started
    assert len(started.session_id) == 36 and started.permissions[0].tool_pattern == "look", started
    print("session")

    say(user_message=pb.UserMessage(content="look around", message_id="m1"))
    calls = []
    for frame in frames:
        if frame.WhichOneof("response") == "tool_request":
            # The same frame has the event in the form of the second generation.
            assert frame.session_event.tool_call_requested.call_id == frame.tool_request.tool_call_id
            calls.append(frame.tool_request)
            if len(calls) == 3:
                break
    for call in (calls[2], calls[0], calls[1]):
        result = f'"seen {call.parameters["at"]}"'
        say(tool_result=pb.ToolResult(tool_call_id=call.tool_call_id, success=True, result=result))
    print("tools")

    text, thought = "", ""
    for frame in frames:
        kind = frame.WhichOneof("response")
        assert kind != "error", frame
        if kind == "text_delta":
            assert frame.text_delta.message_id == "m1"
            text += frame.text_delta.content
        if kind == "thinking_delta":
            thought += frame.thinking_delta.content
        if kind == "turn_complete":
            break
    assert (text, thought, frame.turn_complete.stop_reason) == ("all seen", "hm", "end_turn"), (text, thought)
    assert frame.turn_complete.usage.output_tokens == 10
    print("turn")

    # Of two calls of a tool of the daemon, one is approved and one is denied.
    say(user_message=pb.UserMessage(content="write", message_id="m2"))
    decisions = [True, False]
    for frame in frames:
        kind = frame.WhichOneof("response")
        assert kind != "error", frame
        if kind == "activity_update" and frame.activity_update.state == "waiting_approval":
            call_id = frame.activity_update.detail
            say(permission_decision=pb.PermissionDecision(tool_call_id=call_id, approved=decisions.pop(0)))
        if kind == "turn_complete":
            break
    assert frame.turn_complete.stop_reason == "end_turn" and decisions == [], frame
    assert sorted(path.name for path in Path(working_dir).iterdir()) == ["a.txt"], "one was approved"
    print("approvals")

    say(user_message=pb.UserMessage(content="!long", message_id="m3"))
    for frame in frames:
        kind = frame.WhichOneof("response")
        if kind == "text_delta":
            say(cancel_turn=pb.CancelTurn(reason="enough"))
        if kind == "turn_complete":
            break
    assert frame.turn_complete.stop_reason == "cancelled", frame
    print("cancel")

    requests.put(None)
    rest = list(frames)
    assert [frame.session_event.event_type for frame in rest] == ["session_completed"], rest
    print("end")


main()
