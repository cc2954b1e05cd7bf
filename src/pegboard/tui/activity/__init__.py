"""The Activity page."""
