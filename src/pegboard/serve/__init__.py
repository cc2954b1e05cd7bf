"""`pegboard serve`: the tools of the registry for MCP clients, over stdio or HTTP.

A client of `Runtime` like the command line, without a screen. `service` answers the requests of the protocol with the
official SDK; `offer` describes the tools, `calls` runs them through the gateway, `results` converts what they return,
and `contents` passes resources, prompts and completions of connected servers through. `stdio` and `http` are the
transports; `token` keeps the token of HTTP. `entries` prints the configuration of clients.
"""
