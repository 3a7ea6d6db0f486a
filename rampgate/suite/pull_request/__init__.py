"""What a pull request is told of a suite's run: one comment, kept up to date."""
