"""Runs a whole stack on one machine: services, stand-ins, `dev` and `demo`."""
