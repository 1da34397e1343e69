// A task's arguments, and what a submit gives back.
#pragma once

#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "tensor.h"

#define always_assert(condition)                                                                             \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            throw ::insight_trace::capture::OrchestrationError("assertion failed: " #condition,              \
                                                               {__FILE__, __LINE__});                        \
    } while (0)
#define debug_assert(condition) always_assert(condition)

inline constexpr int CORE_MAX_TENSOR_ARGS = 32;
inline constexpr int CORE_MAX_SCALAR_ARGS = 16;
inline constexpr int CHIP_MAX_TENSOR_ARGS = 256;
inline constexpr int CHIP_MAX_SCALAR_ARGS = 128;
inline constexpr int GRAPH_MAX_TENSOR_ARGS = 128;
inline constexpr int GRAPH_MAX_SCALAR_ARGS = 64;
#define MAX_TENSOR_ARGS CORE_MAX_TENSOR_ARGS
#define MAX_SCALAR_ARGS CORE_MAX_SCALAR_ARGS

inline constexpr int32_t INVALID_KERNEL_ID = -1;
inline constexpr int32_t TASK_TIMING_SLOT_NONE = -1;
inline constexpr int32_t NUM_TASK_TIMING_SLOTS = 16;

enum class PTO2ScopeMode : uint8_t { AUTO = 0, MANUAL = 1 };
enum class PredicateOp : uint8_t { NONE = 0, EQ, NE, GT, LT, GE, LE };
enum DepFlags : uint8_t { DEP_NONE = 0, DEP_WAIT = 1, DEP_RETAIN = 2 };
constexpr DepFlags operator|(DepFlags a, DepFlags b) {
    return static_cast<DepFlags>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr DepFlags operator&(DepFlags a, DepFlags b) {
    return static_cast<DepFlags>(static_cast<uint8_t>(a) & static_cast<uint8_t>(b));
}
constexpr bool dep_has_wait(DepFlags flags) { return (flags & DEP_WAIT) != 0; }
constexpr bool dep_has_retain(DepFlags flags) { return (flags & DEP_RETAIN) != 0; }

struct MixedKernels {
    int32_t aic_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv0_kernel_id = INVALID_KERNEL_ID;
    int32_t aiv1_kernel_id = INVALID_KERNEL_ID;
};

struct CorePredicateOperand {
    const ChipTensor *tensor = nullptr;
    uint32_t ndims = 0;
    uint32_t indices[MAX_TENSOR_DIMS] = {};
};
struct CoreTaskPredicate {
    CorePredicateOperand operand;
    PredicateOp op = PredicateOp::NONE;
    int64_t target = 0;
};

class PTO2LaunchSpec {
  public:
    int16_t block_num() const { return blocks_; }
    void set_block_num(int16_t count) { blocks_ = count; }
#if defined(PTO_NPU_ARCH_A5) // its name there; some orchestrations ask which of the two exists
    int16_t core_num() const { return blocks_; }
    void set_core_num(int16_t count) { blocks_ = count; }
#endif
    bool require_sync_start() const { return sync_start_; }
    void set_require_sync_start(bool yes) { sync_start_ = yes; }

  private:
    int16_t blocks_ = 1;
    bool sync_start_ = false;
};

class TaskOutputTensors {
  public:
    bool empty() const { return count_ == 0; }
    uint32_t size() const { return count_; }
    const ChipTensor &get_ref(uint32_t index, INSIGHT_TRACE_HERE) const & {
        if (index >= count_)
            throw insight_trace::capture::OrchestrationError(
                "output " + std::to_string(index) + " of a task that has " + std::to_string(count_), site);
        return *tensors_[index];
    }
    const ChipTensor &get_ref(uint32_t index) const && = delete;
    PTO2TaskId task_id() const { return id_; }
    void set_task_id(PTO2TaskId id) { id_ = id; }
    void materialize_output(const ChipTensor &tensor) { tensors_[count_++] = &tensor; }

  private:
    PTO2TaskId id_ = PTO2TaskId::invalid();
    uint32_t count_ = 0;
    const ChipTensor *tensors_[CORE_MAX_TENSOR_ARGS];
};
using TaskSubmitResult = TaskOutputTensors;

// A tensor argument of a task.
class TensorRef {
  public:
    const ChipTensor &ref() const { return *static_cast<const ChipTensor *>(pointer); }
    const TensorCreateInfo &create_info() const { return *static_cast<const TensorCreateInfo *>(pointer); }
    operator const ChipTensor &() const { return ref(); }
    template <class T> T *data_as() const { return ref().template data_as<T>(); }
    const void *pointer = nullptr;
};

// Tensors first, then scalars. Tensors are held by address until the task is submitted.
template <int MaxTensors, int MaxScalars> class TaskArguments {
  public:
    TaskArguments() = default;
    TaskArguments(const TaskArguments &) = delete;
    TaskArguments &operator=(const TaskArguments &) = delete;

    bool has_error = false;
    const char *error_msg = nullptr;
    PTO2LaunchSpec launch_spec;

    template <class... Args> void add_input(Args &&...args) { (add(args, TensorArgType::INPUT), ...); }
    template <class... Args> void add_inout(Args &&...args) { (add(args, TensorArgType::INOUT), ...); }
    template <class... Args> void add_no_dep(Args &&...args) { (add(args, TensorArgType::NO_DEP), ...); }
    template <class... Args> void add_output(Args &&...args) {
        static_assert((std::is_lvalue_reference_v<Args> && ...), "a temporary would be gone at submit");
        (add(args, is_info<Args> ? TensorArgType::OUTPUT : TensorArgType::OUTPUT_EXISTING), ...);
    }
    template <class... Args> void add_scalar(Args &&...args) {
        static_assert((is_supported_scalar_arg_v<Args> && ...), "a scalar is a number or an enumerator");
        (add_one_scalar(std::forward<Args>(args)), ...);
    }
    void add_scalars(const uint64_t *values, int count) {
        for (int i = 0; i < count; ++i) put_scalar(values[i], DataType::UINT64, nullptr);
    }
    void add_scalars_i32(const int32_t *values, int count) {
        for (int i = 0; i < count; ++i)
            put_scalar(static_cast<uint32_t>(values[i]), DataType::UINT64, nullptr);
    }
    void copy_scalars_from(const TaskArguments &source, int from, int count) {
        if (from < 0 || count < 0 || from + count > source.scalar_count_)
            return set_error("copy_scalars_from: the source has not that many scalars");
        for (int i = from; i < from + count; ++i) put_scalar(source.scalars_[i], source.types_[i], nullptr);
    }

    // Which arguments a partial dump is to hold: all, or those given, which must be the very objects added.
    template <class... Args> void dump(Args &&...args) {
        static_assert((std::is_lvalue_reference_v<Args> && ...), "a temporary is no argument of the task");
        if constexpr (sizeof...(Args) == 0) {
            if (tensor_count_ + scalar_count_ == 0) return set_error("dump(): the task has no arguments yet");
            for (int i = 0; i < tensor_count_ + scalar_count_; ++i) marked_ |= 1ull << i;
        } else {
            (mark(args), ...);
        }
    }

    void set_dependencies(const PTO2TaskId *ids, uint32_t count) {
        if (count && !ids) return set_error("set_dependencies: no ids");
        if (count && dependencies_) return set_error("set_dependencies: was called before for this task");
        dependencies_ = count ? ids : nullptr;
        dependency_count_ = count;
    }
    void set_dependencies_with_kinds(const PTO2TaskId *ids, const DepFlags *, uint32_t count) {
        set_dependencies(ids, count);
    }
    // As it was until CoreTaskArgsWithDeps.
    template <class... Ids> void add_dep(Ids... ids) { (put_dependency(ids), ...); }
    uint32_t explicit_dep_count() const { return dependency_count_; }
    PTO2TaskId explicit_dep(uint32_t index) const { return dependencies_[index]; }

    void set_allow_early_resolve(bool yes = true) { early_ = yes; }
    bool allow_early_resolve() const { return early_; }
    void set_predicate(const CoreTaskPredicate &predicate) { predicate_ = predicate; }
    const CoreTaskPredicate &predicate() const { return predicate_; }
    void set_task_timing_slot(int32_t slot) { timing_slot_ = slot; }
    int32_t task_timing_slot() const { return timing_slot_; }
    void set_block_num(int16_t count) { launch_spec.set_block_num(count); }

    int32_t tensor_count() const { return tensor_count_; }
    int32_t scalar_count() const { return scalar_count_; }
    const TensorRef &tensor(int32_t i) const { return tensors_[i]; }
    TensorArgType tag(int32_t i) const { return static_cast<TensorArgType>(tags_[i]); }
    uint64_t scalar(int32_t i) const { return scalars_[i]; }
    uint64_t &scalar(int32_t i) { return scalars_[i]; }
    const uint64_t *scalars() const { return scalars_; }

    void set_error(const char *text) {
        if (has_error) return;
        has_error = true;
        error_msg = text;
    }
    void clear() {
        tensor_count_ = scalar_count_ = 0;
        marked_ = ambiguous_ = 0;
        dependencies_ = nullptr;
        dependency_count_ = 0;
        early_ = false;
        predicate_ = {};
        timing_slot_ = TASK_TIMING_SLOT_NONE;
    }
    void reset() {
        clear();
        has_error = false;
        error_msg = nullptr;
    }

    insight_trace::capture::TaskCall call(insight_trace::capture::CallKind kind, const MixedKernels &kernels,
                                          insight_trace::capture::Site site) const {
        static_assert(sizeof(TensorRef) == sizeof(void *) && sizeof(PTO2TaskId) == sizeof(uint64_t));
        return {kind,
                {kernels.aic_kernel_id, kernels.aiv0_kernel_id, kernels.aiv1_kernel_id},
                tensor_count_,
                reinterpret_cast<const void *const *>(tensors_),
                tags_,
                scalar_count_,
                scalars_,
                reinterpret_cast<const uint8_t *>(types_),
                marked_,
                ambiguous_,
                dependency_count_,
                reinterpret_cast<const uint64_t *>(dependencies_),
                launch_spec.block_num(),
                launch_spec.require_sync_start(),
                early_,
                {predicate_.operand.tensor, predicate_.operand.ndims, predicate_.operand.indices,
                 static_cast<uint8_t>(predicate_.op), predicate_.target},
                has_error ? error_msg : nullptr,
                site};
    }

  private:
    template <class T> static constexpr bool is_info = std::is_same_v<std::decay_t<T>, TensorCreateInfo>;

    void put_dependency(PTO2TaskId id) {
        if (dependencies_ && dependencies_ != added_)
            return set_error("add_dep: set_dependencies was called before for this task");
        if (dependency_count_ == std::size(added_))
            return set_error("add_dep: more ids than there is room for");
        added_[dependency_count_++] = id;
        dependencies_ = added_;
    }
    void add(const ChipTensor &tensor, TensorArgType tag) { put_tensor(&tensor, tag); }
    void add(const TensorRef &tensor, TensorArgType tag) { put_tensor(tensor.pointer, tag); }
    void add(const TensorCreateInfo &info, TensorArgType tag) { put_tensor(&info, tag); }
    void put_tensor(const void *pointer, TensorArgType tag) {
        if (scalar_count_) return set_error("a tensor was added after a scalar: all tensors come first");
        if (tensor_count_ == MaxTensors) return set_error("too many tensors for one task");
        tensors_[tensor_count_].pointer = pointer;
        tags_[tensor_count_++] = static_cast<int32_t>(tag);
    }
    template <class T> void add_one_scalar(T &&value) {
        using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
        put_scalar(to_u64<Plain>(value), scalar_data_type<Plain>(),
                   std::is_lvalue_reference_v<T> ? static_cast<const void *>(&value) : nullptr);
    }
    void put_scalar(uint64_t bits, DataType type, const void *source) {
        if (scalar_count_ == MaxScalars) return set_error("too many scalars for one task");
        scalars_[scalar_count_] = bits;
        types_[scalar_count_] = type;
        sources_[scalar_count_++] = source;
    }
    template <class T> void mark(const T &argument) {
        if constexpr (is_supported_scalar_arg_v<T>) {
            int first = -1, matches = 0;
            for (int i = 0; i < scalar_count_; ++i)
                if (sources_[i] == static_cast<const void *>(&argument)) {
                    if (first < 0) first = i;
                    ++matches;
                }
            if (first < 0) return set_error("dump(): this scalar is no argument of the task");
            marked_ |= 1ull << (tensor_count_ + first);
            if (matches > 1) ambiguous_ |= 1ull << (tensor_count_ + first);
        } else {
            for (int i = 0; i < tensor_count_; ++i)
                if (tensors_[i].pointer == static_cast<const void *>(&argument)) {
                    marked_ |= 1ull << i;
                    return;
                }
            set_error("dump(): this tensor is no argument of the task");
        }
    }

    TensorRef tensors_[MaxTensors];
    int32_t tags_[MaxTensors];
    uint64_t scalars_[MaxScalars];
    DataType types_[MaxScalars];
    const void *sources_[MaxScalars];
    int32_t tensor_count_ = 0, scalar_count_ = 0;
    uint64_t marked_ = 0, ambiguous_ = 0;
    const PTO2TaskId *dependencies_ = nullptr;
    uint32_t dependency_count_ = 0;
    PTO2TaskId added_[16];
    bool early_ = false;
    CoreTaskPredicate predicate_;
    int32_t timing_slot_ = TASK_TIMING_SLOT_NONE;
};

using CoreTaskArgs = TaskArguments<CORE_MAX_TENSOR_ARGS, CORE_MAX_SCALAR_ARGS>;
using GraphTaskArgs = TaskArguments<GRAPH_MAX_TENSOR_ARGS, GRAPH_MAX_SCALAR_ARGS>;

// A tensor of the scene: `ref()` in today's orchestrations; earlier ones use it as the tensor itself.
struct SceneTensor : ChipTensor {
    SceneTensor(const ChipTensor &tensor) : ChipTensor(tensor) {}
    const ChipTensor &ref() const { return *this; }
};

// What an orchestration gets: the scene's tensors and scalars. The runner adds SceneTensors only.
struct ChipTaskArgs : TaskArguments<CHIP_MAX_TENSOR_ARGS, CHIP_MAX_SCALAR_ARGS> {
    const SceneTensor &tensor(int32_t i) const {
        return static_cast<const SceneTensor &>(TaskArguments::tensor(i).ref());
    }
};

// Their names until August 2026.
using Arg = CoreTaskArgs;
using ChipStorageTaskArgs = ChipTaskArgs;
