"""Reports of the offline pipeline: of a comparison, of stored runs, and what a pull request is told."""
