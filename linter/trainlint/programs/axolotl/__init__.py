"""Axolotl: its configuration files."""
