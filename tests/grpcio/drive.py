"""Drives a running daemon over gRPC with a client in another language.

usage: drive.py PROTO_DIR TARGET WORKING_DIR, where TARGET is `unix:PATH` or `ADDRESS:PORT`

Needs grpcio and grpcio-tools. The model must call a tool for `!tool` and never stop for `!long`, as the tiny model of
tests/llama does. Prints one line for each thing that worked.
"""

import queue
import sys
import tempfile
from pathlib import Path

import grpc
from grpc_tools import protoc

proto_dir, target, working_dir = sys.argv[1:]
out = tempfile.mkdtemp()
code = protoc.main(["protoc", f"-I{proto_dir}", f"--python_out={out}", f"--grpc_python_out={out}", "kontekst.proto"])
assert code == 0, "the proto does not compile with protoc"
sys.path.insert(0, out)
import kontekst_pb2 as pb
import kontekst_pb2_grpc as rpc

TERMINAL = {"completed", "cancelled", "failed"}


class Run:
    """One `Run` stream. Commands go through a queue, and `None` closes the sending side."""

    def __init__(self, agents, prompt):
        self.commands = queue.Queue()
        self.events = agents.Run(iter(self.commands.get, None), timeout=60)
        start = pb.StartRunCommand(prompt=prompt, agent_name="default", working_dir=working_dir)
        self.commands.put(pb.RunCommand(start=start))

    def until(self, *names):
        """Returns the events up to and including the first of these kinds."""
        seen = []
        for event in self.events:
            kind = event.WhichOneof("event")
            seen.append((kind, event))
            if kind in names:
                return seen
        raise AssertionError(f"the stream ended after {[kind for kind, _ in seen]}")

    def approve(self, call):
        self.commands.put(pb.RunCommand(approve_tool=pb.ApproveToolCommand(call_id=call.call_id)))

    def deny(self, call, reason):
        self.commands.put(pb.RunCommand(deny_tool=pb.DenyToolCommand(call_id=call.call_id, reason=reason)))

    def cancel(self):
        self.commands.put(pb.RunCommand(cancel=pb.CancelRunCommand()))

    def close(self):
        self.commands.put(None)
        assert list(self.events) == [], "nothing comes after the ending"


def kinds(events):
    return [kind for kind, _ in events if kind != "progress"]


def main():
    Path(working_dir, "README.md").write_text("# A readme\n")
    # grpcio sends the socket path as the authority, which HTTP/2 does not allow: github.com/hyperium/h2/pull/487
    channel = grpc.insecure_channel(target, options=[("grpc.default_authority", "localhost")])
    agents, daemon = rpc.AgentServiceStub(channel), rpc.DaemonServiceStub(channel)

    status = daemon.GetStatus(pb.GetStatusRequest())
    assert status.data_dir and status.started_at_rfc3339.endswith("Z") and status.uptime_seconds >= 0
    print("status")

    run = Run(agents, "hello")
    events = run.until(*TERMINAL)
    assert kinds(events)[0] == "started" and kinds(events)[-3:] == ["context_snapshot", "facts", "completed"]
    text = "".join(event.token.text for kind, event in events if kind == "token")
    assert text == events[-1][1].completed.content and text
    run.close()
    print("run")

    run = Run(agents, "!tool")
    calls = run.until("tools_proposed", *TERMINAL)[-1][1].tools_proposed.calls
    assert len(calls) == 1 and calls[0].name == "read_file" and calls[0].arguments_json
    run.approve(calls[0])
    events = run.until(*TERMINAL)
    assert kinds(events)[:3] == ["tool_started", "tool_completed", "tools_completed"], kinds(events)
    assert "# A readme" in events[1][1].tool_completed.output and kinds(events)[-1] == "completed"
    run.close()
    print("approve")

    run = Run(agents, "!tool")
    calls = run.until("tools_proposed", *TERMINAL)[-1][1].tools_proposed.calls
    run.deny(calls[0], "not now")
    events = run.until(*TERMINAL)
    assert kinds(events) == ["tools_completed", "facts", "cancelled"] and events[-1][1].cancelled.denied
    run.close()
    print("deny")

    run = Run(agents, "!long")
    run.until("token", *TERMINAL)
    run.cancel()
    kind, event = run.until(*TERMINAL)[-1]
    assert kind == "cancelled", event
    run.close()
    print("cancel")

    answer = daemon.Shutdown(pb.ShutdownRequest())
    assert answer.message == "shutting down"
    print("shutdown")


main()
