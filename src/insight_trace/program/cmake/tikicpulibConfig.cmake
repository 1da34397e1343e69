# find_package(tikicpulib): the vendor's CPU mode, which build files ask for whatever the run mode is. It is not simulated:
# what is built with it says so.
set(tikicpulib_FOUND TRUE)
foreach(chip 910A 910B 910ProA 910ProB 910PremiumA 310B1 310B2 310B3 310B4 310P1 310P3 910B1 910B2 910B2C 910B3 910B4
        910_9381 910_9382 910_9391 910_9392 910_9362 910_9372 950PR 950PR_9589 950PR_9599 950DT)
  if(NOT TARGET tikicpulib::Ascend${chip})
    add_library(tikicpulib::Ascend${chip} INTERFACE IMPORTED GLOBAL)
    set_target_properties(tikicpulib::Ascend${chip} PROPERTIES
      INTERFACE_COMPILE_OPTIONS "-include;${CMAKE_CURRENT_LIST_DIR}/cpu_mode.h")
  endif()
endforeach()
