"""The Health page."""
