"""Kubeflow Trainer: TrainJobs and runtimes, their admission, and what is built of them."""
