"""Workers on a network: the websocket transport, authentication, and objects sent between workers."""
