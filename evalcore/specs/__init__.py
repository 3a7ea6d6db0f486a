"""A spec's three layers: what an agent answered, on which path, at which cost (AgentCI 2.0). Pure."""
