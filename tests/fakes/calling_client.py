"""A client that makes many concurrent calls: `python calling_client.py COUNT TOOL,TOOL… COMMAND ARGS…`.

It starts the command, calls the tools in turns, and prints the id of each response as it arrives, with ` failed` if the
tool failed. It ends when every call has a response, or when the server closes its output; the last line is `end`, the
number of responses and the server's exit code.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any


def main(count: int, tools: list[str], command: list[str]) -> None:
    """Make the calls."""
    chance = random.Random(count)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "caller", "version": "1"}}
    messages: list[dict[str, Any]] = [{"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": info}]
    messages += [{"jsonrpc": "2.0", "method": "notifications/initialized"}]
    for number in range(count):
        args = {"number": number, "seconds": chance.uniform(0, 0.5)}
        params = {"name": tools[number % len(tools)], "arguments": args}
        messages.append({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    stdin = server.stdin

    def send() -> None:
        with suppress(OSError):
            for message in messages:
                stdin.write(json.dumps(message).encode() + b"\n")
                stdin.flush()

    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    responses = 0
    for line in server.stdout:
        message = json.loads(line)
        if message.get("id") == "init" or "id" not in message:
            continue
        responses += 1
        failed = "error" in message or message["result"].get("isError")
        print(f"{message['id']}{' failed' if failed else ''}", flush=True)
        if responses == count:
            break
    sending.join()
    with suppress(OSError):
        stdin.close()
    print(f"end {responses} {server.wait(60)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2].split(","), sys.argv[3:])
