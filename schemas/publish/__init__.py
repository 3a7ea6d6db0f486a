"""Publishes the contracts: JSON Schemas, an AsyncAPI document and an example of every form."""
