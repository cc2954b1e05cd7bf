"""JSON data: text (`json_text`) and JSON Pointers (`pointer`), and the mask of secrets in it (`mask`)."""
