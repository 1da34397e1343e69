// The tile API in one include, as kernels name it.
#pragma once

#include "pto/comm/pto_comm_inst.hpp"
#include "pto/common/call_forms.hpp"
#include "pto/common/fifo.hpp"
