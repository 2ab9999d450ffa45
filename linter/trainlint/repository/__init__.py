"""What a repository holds: its files, the commands that they start, and the releases that they state."""
