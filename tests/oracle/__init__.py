"""Differential tests against the real programs; README.md beside this file says how they are run."""
