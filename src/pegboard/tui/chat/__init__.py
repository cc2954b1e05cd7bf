"""The Chat page: conversation, prompt, sessions and models."""
