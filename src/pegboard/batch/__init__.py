"""Calls of one tool with every row of a file.

`rows` reads JSON Lines and CSV as a stream, `mapping` converts a row to arguments, and `run` calls the tool for each
row through the same pipeline as every other call. `results` writes one line per row, and `journal` records which rows
were started and finished, so that a batch can be resumed. `engine` is the port for where calls run; `engines` has one
implementation per module: the worker pool, and a Dask cluster.

The package is a client of `Runtime`, without a screen.
"""
