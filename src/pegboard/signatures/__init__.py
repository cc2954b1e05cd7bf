"""JSON Schemas and descriptions from the annotations and docstrings of functions, read without running them."""
