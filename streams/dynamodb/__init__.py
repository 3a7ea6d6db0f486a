"""The feed: a DynamoDB stream onto the thumbs topic."""
