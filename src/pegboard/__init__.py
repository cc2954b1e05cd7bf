"""Pegboard: a terminal workbench for the tools that language-model agents use.

The map, from the ground up (every room imports only what stands below it):

- `errors`, `models`: the words that everybody uses; `ports`: where layers meet.
- `sdk`: what an author of tools imports; `packs`: the built-in tools, written with it;
  `examples`: others, to be copied.
- `schema`: validation of arguments; `config`: settings and paths; `results`: shaping a value for the eye.
- `discovery`: reads packs without running them; `worker`: the child process that runs tools; `forms`: schemas as forms.
- `executor`: the pool of workers; `registry`: all tools by name; `history`: calls and sessions, kept;
  `presets`: arguments and scripts, kept by name.
- `gateway`: the one road that every call takes; `ask`: the loop between a user, a model and the tools;
  `scripts`: many tools behind one bash script; `health`: what tools need, and whether it is there.
- `runtime`: builds it all and offers the verbs.
- `tui`, `cli`: two clients of `Runtime`.

Importing this package loads nothing heavy.
"""

__version__ = "0.1.0"
