// Call forms with template options: reductions and broadcasts.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {} // namespace pto
