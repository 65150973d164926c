"""The way in for editors: what a tool does as events of the Agent Client Protocol, and an agent without a model."""
