"""The words everyone shares: events, outcomes, dead letters, views. Imports none of ours."""
