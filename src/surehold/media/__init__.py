"""Images and documents: untrusted bytes become small pictures and text."""
