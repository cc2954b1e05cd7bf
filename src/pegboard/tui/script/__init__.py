"""What the Script place is made of."""
