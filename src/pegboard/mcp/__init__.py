"""MCP servers as a source of tools: connections, calls, and what servers ask the user.

`hub` runs all connections in a thread of its own, so that neither the import of the SDK nor a server can block the
app. `connection` keeps one server connected, over `process` (stdio) or `http`; `watch` bounds and repairs its messages
before the SDK sees them. `specs` and `results` convert between the server's types and Pegboard's, `questions` answers
the server's own requests, and `failures` explains what went wrong. `runner` runs calls.

Only this package imports the MCP SDK. `launch` runs in the processes of servers and imports nothing but `keeper`.
"""
