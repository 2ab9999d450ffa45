"""The rules on torchtune's configs, commands and jobs."""
