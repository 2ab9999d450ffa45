"""LLaMA-Factory: the files of llamafactory-cli."""
