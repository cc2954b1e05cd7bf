"""Child process in which tools run.

`serve` receives requests and sends answers. `invocation` runs a call: `loader` imports the pack, and
`named_imports` what the pack imports by a name in a text; `pegboard.sdk.arguments` converts JSON to the annotated
types, and `pegboard.sdk.values` and `errors` convert the return value or the exception to JSON. After the call,
`isolation` restores the state of the process, and `leftovers` detects changes that can't be undone, after which the
process is not reused. `wire` describes the protocol, and `inbox` reads requests and replies. `keeper` is the parent
process, which kills all that the worker started. `spawned` makes packs importable in processes that tools start.

These modules use only fast parts of the standard library, because calls wait for the start of a worker.
"""
