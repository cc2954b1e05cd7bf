"""The child process that tools run in.

`serve` is the process: it takes one request after another and answers each. `calling` makes the call: on the way it
passes `loading` (a pack's file becomes a module), `arguments` (JSON becomes what the function's annotations ask for),
the function itself, and `values` (what it returned becomes JSON) or `failures` (what it raised becomes an error).
`surroundings` puts back afterwards what the tool changed in the process; `leftovers` notices what can't be put back,
like threads that go on, after which the process is not used again. `wire` tells how both sides write to each other;
`inbox` reads what comes, replies to what the tool asks of Pegboard among it.

Everything here is the standard library, and little of it: a cold start is waited for.
"""
