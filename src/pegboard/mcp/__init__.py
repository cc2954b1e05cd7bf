"""MCP servers as a source of tools: connections, calls, logins, and what servers ask the user.

`hub` runs all connections on a thread of its own, so that neither the import of the SDK nor a server can block the app.
`connection` keeps one server connected, over `process` (stdio) or `http`; `watch` bounds and repairs its messages
before the SDK sees them. `listing` and `specs` turn its tools into Pegboard's, `runner` and `calls` run them, `results`
and `contents` convert what it returns, `questions` answers its own requests, and `failures` explains what went wrong.
`authorization` logs in to HTTP servers; `logins` keeps the tokens.

Only this package and `serve` import the MCP SDK. `launch` runs in the processes of servers and imports nothing but the
keeper.
"""
