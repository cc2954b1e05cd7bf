"""Large results, read from their files as far as they are shown.

A result that exceeds the limit of the screen is kept in a file as JSON. `open_stored` indexes that file in a process of
its own and returns a value whose lists and objects read their members on demand. `arrange`, `search_whole` and
`run_filter` work on whole results, in such a process too, with limits on time and memory.
"""
