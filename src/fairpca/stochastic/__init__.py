"""Stochastic fair PCA: mini-batches of rows, where covariances do not fit into memory."""
