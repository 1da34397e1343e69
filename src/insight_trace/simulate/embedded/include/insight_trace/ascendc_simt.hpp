// Functions of many threads (SIMT): a kernel that launches one ends with its name and line.
#pragma once
