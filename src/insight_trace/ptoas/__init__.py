"""PyPTO build directories: find their kernels, read `.pto` and signatures, plan, run and book a profile.

`kernel_runner.KernelRunner` is the protocol of the simulators that run them.
"""
