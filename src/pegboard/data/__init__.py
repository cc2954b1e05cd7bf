"""JSON (`json_text`, `pointer`, `message_id`), TOML (`toml`), text that can be encoded (`unicode`), masks (`mask`)."""
