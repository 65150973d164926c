"""The MCP server: an adapter of plain data, our own loop over stdio, and a binding to the SDK for HTTP."""
