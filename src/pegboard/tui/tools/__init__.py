"""The Tools page."""
