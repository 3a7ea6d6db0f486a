"""`rampgate suite blame`: which changed part makes cases fail."""
