"""The torch backend of syft-core."""
