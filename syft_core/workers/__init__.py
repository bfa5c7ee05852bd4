"""Workers: parties that hold objects and answer messages."""
