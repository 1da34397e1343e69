"""Many jobs elsewhere: kernels of a profile run on the workers of a Dask cluster."""
