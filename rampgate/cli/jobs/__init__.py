"""Does what the commands ask; imported when a command runs."""
