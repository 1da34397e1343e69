// Intrinsics of the cores are there before every source with kernels.
#pragma once
