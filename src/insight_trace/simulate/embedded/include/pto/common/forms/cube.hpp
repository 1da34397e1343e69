// Call forms with template options: the cube core.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {} // namespace pto
