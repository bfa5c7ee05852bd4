"""The toy backend of syft-core: all that a framework author has to write."""
