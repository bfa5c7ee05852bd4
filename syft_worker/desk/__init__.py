"""The owner's desk: review release requests and decide, over the same port as any client."""
