#error "insight-trace: the vendor's CPU mode is not simulated: RUN_MODE npu or sim runs the kernels here"
