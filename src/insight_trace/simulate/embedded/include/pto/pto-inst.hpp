// The tile API in one include, as kernels name it.
#pragma once

#include "pto/common/call_forms.hpp"
