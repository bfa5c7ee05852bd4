"""The demo for torch: three hospitals train one model, and a clinic uses it without seeing it."""
