"""TRL: files for its trainers' command line."""
