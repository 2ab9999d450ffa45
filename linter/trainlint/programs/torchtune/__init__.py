"""torchtune: recipe configs, `tune run`, and TrainJobs that start it."""
