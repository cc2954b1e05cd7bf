"""The built-in packs.

They are packs like any other: files that discovery reads and workers load. Importing this package loads none of them;
`from pegboard.packs.fs import read_file` loads one.
"""
