"""Mutants that behave like the original, by judgement: they do not count, since no test could notice them."""

EQUIVALENT: dict[tuple[str, str, str, str], str] = {}
"""By path, function, original and mutant: the reason."""
