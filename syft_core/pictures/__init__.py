"""HTML, SVG and text pictures of chains, workers and messages: names and forms, never remote values.

These are pure functions: they send no messages and do not depend on the rest of the library.
"""
