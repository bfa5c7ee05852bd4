"""The operator's side of a served worker: configuration, process, rights, page, tokens, certificates, storage."""
