// Call forms with template options: elements change place.
#pragma once

#include "pto/common/call_forms.hpp"

namespace pto {} // namespace pto
