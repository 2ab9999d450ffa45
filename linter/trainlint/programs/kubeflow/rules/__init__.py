"""The rules on TrainJobs and runtimes: structure, webhooks, torch plugin, JobSets, pods, and what has no effect."""
