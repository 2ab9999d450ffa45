"""TrainingArguments in YAML.

A YAML file does not say which parser reads it. A finding is an error where every parser of the release fails, and a
warning where only HfArgumentParser, which converts nothing, fails or a script's own dataclass may differ.
"""
