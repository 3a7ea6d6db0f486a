"""Models of what checks of judges are held to, and of what they say."""
