"""What encrypted computation needs of torch: kernels, rules of its operations, methods of modules."""
