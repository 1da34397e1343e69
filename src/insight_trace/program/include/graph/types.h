#pragma once
#include "graph/tensor.h"
