"""Whole screens: each owns its state and binds it down to its panes."""
