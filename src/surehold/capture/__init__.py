"""What other programs change: their calls are noticed before they happen, and earlier bytes are kept. Nothing in here writes below a root."""
