// AscendC under this name.
#pragma once

#include "ascendc/copies.hpp"
