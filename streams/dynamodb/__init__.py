"""The feed: publishes a DynamoDB stream on the thumbs topic."""
