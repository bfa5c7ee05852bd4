"""The numpy backend of syft-core."""
