"""Validation of arguments against JSON Schemas."""
