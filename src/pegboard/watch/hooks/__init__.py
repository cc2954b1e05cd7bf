"""Hooks of agents: programs that an agent runs before and after each call of its own tools.

`hook` is that program. It passes each event to the observer of the session (`observer`, `calls`), which reads it in the
form of any agent (`events`, `results`) and answers with the output that the agent expects (`decisions`). `transcript`
finds calls that an agent doesn't report, `servers` the MCP servers whose calls a proxy records. `adoption` writes the
hooks to the configuration of an agent.
"""
