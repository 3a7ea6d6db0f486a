"""What the worker does in a second, and what others do side by side; see README.md."""
