"""What each release of Kubeflow Trainer, JobSet and Kubernetes accepts and builds."""
