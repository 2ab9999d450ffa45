"""Bytes to values: text, YAML documents with places, scalars by dialect, and values that may not be known."""
