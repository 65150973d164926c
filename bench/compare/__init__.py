"""The same work through the same client, with our server and with other file servers from the registries."""
