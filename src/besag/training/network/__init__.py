"""The network as it is trained: ragged batches, attention among them, layers one by one, adaptation."""
