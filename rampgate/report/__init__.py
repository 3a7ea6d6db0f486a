"""Reports of checks: what they have, and how a page and Markdown are written."""
