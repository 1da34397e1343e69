// Its names are all in this one.
#pragma once

#include "pto_orchestration_api.h"
