"""What is known of overrides: who let a gate pass, who skips one, and the report of a quarter."""
