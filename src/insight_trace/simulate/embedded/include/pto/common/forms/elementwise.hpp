// Call forms with template options: element by element.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {} // namespace pto
