"""Those who hold objects."""
