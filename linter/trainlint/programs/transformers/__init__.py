"""transformers: YAML files of TrainingArguments."""
