"""Remediation workflows of agents on Kubernetes: the phase of one, what its steps did, and its summary. Pure.

In reading order: `objects` what is read of a cluster, `phase` where a Proposal stands, `workflow` what its children
say, `summary` the same for people and judges, `sealing` what of it counts in a record.
"""
