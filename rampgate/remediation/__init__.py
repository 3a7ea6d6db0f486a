"""Commands for remediation workflows on a cluster: shows one, runs a case's, cleans up."""
