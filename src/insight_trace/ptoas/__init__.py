"""PyPTO build directories: find their kernels, read `.pto` and signatures, plan and book a profile run.

Nothing here simulates. `runner.KernelRunner` is the door through which a simulator is called.
"""
