"""`rampgate suite check`: what a suite's own stored runs say of its gates."""
