# Kernel and Orchestration Configuration

from pathlib import Path

_ROOT_DIR = Path(__file__).parent

RUNTIME_CONFIG = {
    "runtime": "tensormap_and_ringbuffer",
    "aicpu_thread_num": 4,
}

ORCHESTRATION = {
    "source": str(_ROOT_DIR / "orchestration" / "main.cpp"),
    "function_name": "aicpu_orchestration_entry",
}

KERNELS = [
    {
        "func_id": 0,
        "name": "scale_blocks",
        "source": str(_ROOT_DIR / "kernels" / "aiv" / "scale_blocks.cpp"),
        "core_type": "aiv",
    },
    {
        "func_id": 1,
        "name": "square_rows",
        "source": str(_ROOT_DIR / "kernels" / "aiv" / "square_rows.cpp"),
        "core_type": "aiv",
    },
]
