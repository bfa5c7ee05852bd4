"""What stands here for objects that live elsewhere."""
