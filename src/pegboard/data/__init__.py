"""JSON data (`json_text`, `pointer`, `message_id`), text that can be encoded (`unicode`), secrets in it (`mask`)."""
