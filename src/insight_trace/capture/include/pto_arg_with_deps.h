// Task arguments that own the ids of the tasks they wait for.
#pragma once

#include "pto_orchestration_api.h"

template <size_t MaxDependencies = 16> class CoreTaskArgsWithDeps : public CoreTaskArgs {
  public:
    template <class... Ids> void add_dep(Ids... ids) { (put(ids), ...); }
    template <class... Ids> void add_dep_wait(Ids... ids) { (put(ids), ...); }
    void reset() {
        CoreTaskArgs::reset();
        count_ = 0;
    }
    CoreTaskArgs &finalize_for_submit() {
        set_dependencies(nullptr, 0);
        set_dependencies(ids_, count_);
        return *this;
    }

  private:
    void put(PTO2TaskId id) {
        if (count_ == MaxDependencies) return set_error("add_dep: more ids than there is room for");
        ids_[count_++] = id;
    }
    PTO2TaskId ids_[MaxDependencies];
    uint32_t count_ = 0;
};
// Its names until August 2026.
template <size_t N = 16> using L0TaskArgsWithDeps = CoreTaskArgsWithDeps<N>;
template <size_t N = 16> using ArgWithDeps = CoreTaskArgsWithDeps<N>;

template <size_t N>
inline TaskOutputTensors rt_submit_task(const MixedKernels &kernels, CoreTaskArgsWithDeps<N> &args,
                                        INSIGHT_TRACE_HERE) {
    return rt_submit_task(kernels, args.finalize_for_submit(), site);
}
template <size_t N>
inline TaskOutputTensors rt_submit_aic_task(int32_t kernel, CoreTaskArgsWithDeps<N> &args,
                                            INSIGHT_TRACE_HERE) {
    return rt_submit_aic_task(kernel, args.finalize_for_submit(), site);
}
template <size_t N>
inline TaskOutputTensors rt_submit_aiv_task(int32_t kernel, CoreTaskArgsWithDeps<N> &args,
                                            INSIGHT_TRACE_HERE) {
    return rt_submit_aiv_task(kernel, args.finalize_for_submit(), site);
}
template <size_t N>
inline TaskOutputTensors rt_submit_dummy_task(CoreTaskArgsWithDeps<N> &args, INSIGHT_TRACE_HERE) {
    return rt_submit_dummy_task(args.finalize_for_submit(), site);
}
