"""Watching of other agents: proxies and observers that record calls, and hold those that rules or a pause apply to.

The proxy of an MCP server (`proxy`, `process`, `lines`; for one with an address also `remote`, `http`) copies bytes.
It imports little, so that it starts fast, and does nothing that takes long. A second process, the observer (`observer`,
`connection`, `record`), parses the copies of messages that the proxy sends it over a socket (`link`), and records
calls. If rules or a pause may apply to a call, the proxy (`gate`) waits for the observer's decision (`judge`).

If the observer or the record fails, the proxy continues without them. Only calls that a rule or a pause may hold are
then rejected.

`hooks` records the calls of an agent's own tools, `otel` receives its telemetry. `adoption` changes the configuration
of other clients so that their servers run behind the proxy (`changed_files`; `client_text` and its forms).
"""
