"""A modelled AI core: kernels are compiled by the host, run unmodified, and every instruction is recorded."""
