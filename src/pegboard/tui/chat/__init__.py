"""The conversation with a model: what was said and called, as blocks, drawn line by line, and the line to type in."""
