"""The Script page: editor, commands, calls and output."""
