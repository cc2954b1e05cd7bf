"""JSON data (`json_text`, `pointer`), text that can be encoded (`unicode`) and the mask of secrets (`mask`)."""
