"""Hooks of agents: programs that an agent runs before and after each call of its own tools."""
