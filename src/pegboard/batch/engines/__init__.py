"""Implementations of the engine port, one per module. Import them late: Dask is an optional dependency."""
