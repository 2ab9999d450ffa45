"""What each release of each program accepts: data with its source, and no logic."""
