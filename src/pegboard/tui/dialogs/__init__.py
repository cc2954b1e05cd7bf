"""Dialogs that more than one page opens."""
