"""What a suite's results say: which cases are run, and what their outputs are worth (the offline pipeline). Pure."""
