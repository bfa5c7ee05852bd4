"""Workers on a network: the websocket transport, authentication, storage and the tools of a worker's operator."""
