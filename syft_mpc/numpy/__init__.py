"""What encrypted computation needs of numpy: kernels and rules of its operations."""
