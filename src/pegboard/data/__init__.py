"""JSON data: text (`json_text`) and JSON Pointers (`pointer`)."""
