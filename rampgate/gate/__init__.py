"""The commands on gates: run, plan, compare, proposal (PC5 §5.5)."""
