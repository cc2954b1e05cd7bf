"""State that every page shows."""
