"""What commands on gates do: run, compare, propose."""
