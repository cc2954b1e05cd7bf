"""The shell around the pages: themes, palette, help, keymap, header and jump mode."""
