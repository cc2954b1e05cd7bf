"""Small parts that panes and screens are made of."""
