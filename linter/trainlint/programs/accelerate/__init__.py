"""accelerate: the config files of `accelerate launch`."""
