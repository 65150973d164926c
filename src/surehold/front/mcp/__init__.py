"""The MCP server: an adapter of plain data, and a thin binding to the SDK."""
