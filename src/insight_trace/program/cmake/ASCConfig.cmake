# find_package(ASC): the language of kernel sources, and the functions that build files of such projects call.
include("${CMAKE_CURRENT_LIST_DIR}/ascendc.cmake")
set(ASC_FOUND TRUE)
