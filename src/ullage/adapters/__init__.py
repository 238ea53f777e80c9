"""Adapters that keep the agents of other frameworks within their context window."""
