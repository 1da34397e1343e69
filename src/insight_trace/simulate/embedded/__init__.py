"""A modelled AI core: kernels compiled with the host's compiler, run unmodified, every instruction recorded."""
