#pragma once

#include "opdev/fp16_t.h"
