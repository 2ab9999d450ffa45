"""Soup: `soup.yaml` and `soup train`."""
