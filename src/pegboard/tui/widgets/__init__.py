"""Widgets and dialog bases that more than one page uses."""
