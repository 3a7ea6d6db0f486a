"""What gates ask of the outside, and how their requests are counted."""
