"""MCP servers as a source of tools and a runner of their calls; the only package that imports the MCP SDK."""
