"""Training with noise: gradients that are clipped for each sample, and Gaussian noise in each step."""
