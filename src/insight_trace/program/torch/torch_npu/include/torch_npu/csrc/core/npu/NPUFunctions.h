// Part of NPUStream.h.
#pragma once
#include "torch_npu/csrc/core/npu/NPUStream.h"
