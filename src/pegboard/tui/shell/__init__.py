"""What surrounds every page: header, footer, palette, help, themes and keys."""
