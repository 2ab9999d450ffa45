"""What a repository holds: its files, the commands that they start, and the versions that they pin."""
