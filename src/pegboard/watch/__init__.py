"""Transparent proxy of one MCP server, and the record of the calls that pass through it.

The proxy (`proxy`, `process`, `lines`) copies bytes. It imports little, so that it starts fast, and does nothing that
takes long. A second process, the observer (`observer`, `calls`, `connection`), parses the copies of messages that the
proxy sends it over a socket (`link`), records calls, and decides on calls when rules or a pause may apply to them.

If the observer or the record fails, the proxy continues without them. Only calls that a rule or a pause may hold are
then rejected.
"""
