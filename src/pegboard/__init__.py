"""Pegboard: a terminal workbench for the tools that language-model agents use.

The packages, from the ground up (each imports only those above it in this list):

- `errors`, `models`: shared exceptions and data types; `data`: JSON text and pointers; `storage`: atomic writing of
  files; `guide`: the pages of the guide; `built_in`: the folder of the built-in packs; `on_demand`: late imports;
  `until_done`: steps that a cancelled task still waits for; `ports`: the protocols between layers.
- `sdk`: the interface for authors of tools; `packs`: the built-in tools, written with it; `examples`: packs to copy.
- `schema`: validation of arguments; `signatures`: annotations and docstrings as schemas; `config`: settings and paths;
  `results`: formatting of values.
- `discovery`: reads packs without running them; `worker`: the child process that runs tools; `forms`: schemas as forms.
- `executor`: the pool of workers; `mcp`: the connections to MCP servers; `registry`: all tools by name; `history`:
  records of calls, and sessions; `presets`: saved arguments and scripts; `brake`: calls of other agents that await
  approval, and their pause.
- `gateway`: the pipeline that every call passes; `ask`: the loop between a user, a model and the tools;
  `scripts`: bash scripts whose commands are tools; `health`: the requirements of tools and their status.
- `runtime`: builds everything and offers every operation.
- `batch`: one tool over many rows; `checks`: saved calls with expected results, and changes of schemas.
- `tui`, `cli`, `serve`, `watch`: the interface, the command line, the MCP server for other agents, and the proxies that
  record what other agents do.

Importing this package loads nothing heavy.
"""

__version__ = "0.1.0"
