// torch's `npu` device on a simulated chip: memory, copies and streams are ours, other operators run on the
// CPU.
//
// Tensors lie in device memory, which the host cannot read at their addresses; the runtime has the same
// memory elsewhere.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_cpu_dispatch.h>
#include <c10/core/Allocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <mutex>
#include <set>
#include <torch/library.h>

#include "acl/acl.h"
#include "torch_npu/csrc/core/npu/NPUStream.h"

extern "C" {
void *insight_trace_allocate(uint64_t bytes);
void insight_trace_release(void *pointer);
int insight_trace_copy(void *to, const void *from, uint64_t count);
void *insight_trace_host_view(const void *pointer);
void insight_trace_wrote(const void *pointer, uint64_t bytes);
}

namespace {

constexpr auto kNpu = c10::DeviceType::PrivateUse1;
constexpr int kDevices = 8;
thread_local c10::DeviceIndex t_device = 0;
thread_local void *t_stream = nullptr;

void release(void *pointer) { insight_trace_release(pointer); }

struct NpuAllocator final : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
        void *made = nullptr;
        if (bytes) {
            made = insight_trace_allocate(bytes);
            TORCH_CHECK_WITH(OutOfMemoryError, made, "NPU out of memory: ", bytes, " bytes");
        }
        return {made, made, &release, c10::Device(kNpu, t_device)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &release; }
    void copy_data(void *to, const void *from, std::size_t count) const override {
        insight_trace_copy(to, from, count);
    }
};
NpuAllocator g_allocator;
REGISTER_ALLOCATOR(kNpu, &g_allocator);

std::mutex g_pinned_mutex;
std::set<const void *> g_pinned;
struct PinnedAllocator final : c10::Allocator {
    static void free_pinned(void *pointer) {
        std::lock_guard<std::mutex> lock(g_pinned_mutex);
        g_pinned.erase(pointer);
        free(pointer);
    }
    c10::DataPtr allocate(size_t bytes) override {
        void *made = nullptr;
        TORCH_CHECK(posix_memalign(&made, 64, bytes ? bytes : 64) == 0, "no pinned memory");
        std::lock_guard<std::mutex> lock(g_pinned_mutex);
        g_pinned.insert(made);
        return {made, made, &free_pinned, c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
    void copy_data(void *to, const void *from, std::size_t count) const override { memcpy(to, from, count); }
};
PinnedAllocator g_pinned_allocator;

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override { return kNpu; }
    c10::Device exchangeDevice(c10::Device device) const override {
        const c10::Device before(kNpu, t_device);
        setDevice(device);
        return before;
    }
    c10::Device getDevice() const override { return c10::Device(kNpu, t_device); }
    void setDevice(c10::Device device) const override {
        if (device.index() >= 0) uncheckedSetDevice(device);
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override {
        if (device.index() >= 0) t_device = device.index();
    }
    c10::Stream getStream(c10::Device device) const noexcept override {
        return c10::Stream(c10::Stream::UNSAFE, device, reinterpret_cast<int64_t>(t_stream));
    }
    c10::Stream getDefaultStream(c10::Device device) const override {
        return c10::Stream(c10::Stream::DEFAULT, device);
    }
    c10::Stream getNewStream(c10::Device device, int = 0) const override {
        aclrtStream made = nullptr;
        aclrtCreateStream(&made);
        return c10::Stream(c10::Stream::UNSAFE, device, reinterpret_cast<int64_t>(made));
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
        return getNewStream(device);
    }
    c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
        const c10::Stream before = getStream(stream.device());
        t_stream = reinterpret_cast<void *>(stream.id());
        return before;
    }
    c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex,
                const c10::EventFlag) const override {
        if (!*event) aclrtCreateEvent(event);
        aclrtRecordEvent(*event, reinterpret_cast<void *>(stream.id()));
    }
    void block(void *event, const c10::Stream &stream) const override {
        aclrtStreamWaitEvent(reinterpret_cast<void *>(stream.id()), event);
    }
    bool queryEvent(void *) const override { return true; }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override {
        if (event) aclrtDestroyEvent(event);
    }
    bool queryStream(const c10::Stream &) const override { return true; }
    void synchronizeStream(const c10::Stream &stream) const override {
        const int error = aclrtSynchronizeStream(reinterpret_cast<void *>(stream.id()));
        TORCH_CHECK(error == 0, "synchronize: ACL error ", error, ": ", aclGetRecentErrMsg());
    }
    void synchronizeEvent(void *) const override {}
    void synchronizeDevice(const c10::DeviceIndex) const override {
        const int error = aclrtSynchronizeDevice();
        TORCH_CHECK(error == 0, "synchronize: ACL error ", error, ": ", aclGetRecentErrMsg());
    }
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
    double elapsedTime(void *first, void *last, const c10::DeviceIndex) const override {
        float ms = 0;
        aclrtEventElapsedTime(&ms, first, last);
        return ms;
    }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override { return true; }
    bool isAvailable() const override { return true; }
    bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
    c10::DeviceIndex deviceCount() const override { return kDevices; }
    void setCurrentDevice(c10::DeviceIndex device) const override { t_device = device; }
    c10::DeviceIndex getCurrentDevice() const override { return t_device; }
    c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
        return std::exchange(t_device, device);
    }
    c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
        return device < 0 ? t_device : exchangeDevice(device);
    }
    const at::Generator &getDefaultGenerator(c10::DeviceIndex) const override {
        return at::detail::getDefaultCPUGenerator();
    }
    at::Generator getNewGenerator(c10::DeviceIndex) const override {
        return at::make_generator<at::CPUGeneratorImpl>();
    }
    at::Device getDeviceFromPtr(void *) const override { return c10::Device(kNpu, t_device); }
    bool isPinnedPtr(const void *pointer) const override {
        std::lock_guard<std::mutex> lock(g_pinned_mutex);
        return g_pinned.count(pointer) != 0;
    }
    at::Allocator *getPinnedMemoryAllocator() const override { return &g_pinned_allocator; }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t size) const override {
        c10::DataPtr fresh = g_allocator.allocate(size);
        const size_t kept = std::min(size, storage.nbytes());
        if (kept) insight_trace_copy(fresh.get(), storage.data(), kept);
        storage.set_data_ptr_noswap(std::move(fresh));
        storage.set_nbytes(size);
    }
};

// --- operators
// -----------------------------------------------------------------------------------------------

// The device of a tensor that is made: the one that is asked for, else the current one.
void choose(const std::optional<at::Device> &device) {
    if (!device || device->index() < 0) return;
    TORCH_CHECK(device->index() < kDevices, "Invalid device id ", int(device->index()), ": there are ",
                kDevices);
    t_device = device->index();
}

at::Tensor empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
    const auto before = t_device;
    choose(device);
    auto made = at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &g_allocator,
                                          c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                          c10::dtype_or_default(dtype), format);
    t_device = before;
    return made;
}

at::Tensor empty_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device> device, std::optional<bool>) {
    const auto before = t_device;
    choose(device);
    auto made = at::detail::empty_strided_generic(
        C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &g_allocator,
        c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
    t_device = before;
    return made;
}

// Dense in the order of its sizes, whatever the strides of the other: as the vendor's device does, and as
// launchers that hand over addresses rely on.
at::Tensor empty_like(const at::Tensor &self, std::optional<at::ScalarType> dtype,
                      std::optional<at::Layout> layout, std::optional<at::Device> device,
                      std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
    const auto options = self.options().merge_in(
        c10::TensorOptions().dtype(dtype).layout(layout).device(device).pinned_memory(pinned));
    const bool kept = format && *format != at::MemoryFormat::Preserve;
    return at::empty(self.sizes(), options, kept ? *format : at::MemoryFormat::Contiguous);
}

// The same memory as a tensor of the CPU.
at::Tensor on_host(const at::Tensor &tensor) {
    if (tensor.device().type() != kNpu) return tensor;
    auto options = tensor.options().device(at::kCPU);
    if (tensor.numel() == 0) return at::empty(tensor.sizes(), options);
    auto view =
        at::from_blob(insight_trace_host_view(tensor.data_ptr()), tensor.sizes(), tensor.strides(), options);
    if (tensor.is_conj()) view = view.conj();
    if (tensor.is_neg()) view = at::_neg_view(view);
    return view;
}
void changed(const at::Tensor &tensor) {
    if (tensor.device().type() == kNpu && tensor.storage().nbytes())
        insight_trace_wrote(tensor.storage().data(), tensor.storage().nbytes());
}

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &to, bool) {
    on_host(to).copy_(on_host(self));
    changed(to);
    return to;
}
at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &to) {
    if (to.sizes() != self.sizes()) to.resize_(self.sizes());
    return copy_from(self, to, false);
}
at::Scalar local_scalar(const at::Tensor &self) { return on_host(self).item(); }

const at::Tensor &resize(const at::Tensor &self, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
    auto *impl = self.unsafeGetTensorImpl();
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    const size_t wanted =
        static_cast<size_t>(c10::multiply_integers(sizes) + self.storage_offset()) * self.itemsize();
    if (wanted > self.storage().nbytes())
        at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), wanted);
    impl->set_sizes_contiguous(sizes);
    if (format && *format != at::MemoryFormat::Preserve && *format != at::MemoryFormat::Contiguous)
        impl->empty_tensor_restride(*format);
    return self;
}
at::Tensor as_strided(const at::Tensor &self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
    return at::cpu::as_strided(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                               offset ? std::optional<int64_t>(offset->guard_int(__FILE__, __LINE__))
                                      : std::nullopt);
}
at::Tensor view(const at::Tensor &self, c10::SymIntArrayRef size) {
    return at::cpu::view(self, C10_AS_INTARRAYREF_SLOW(size));
}
at::Tensor reshape_alias(const at::Tensor &self, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    return at::cpu::as_strided(self, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
at::Tensor &set_storage(at::Tensor &self, at::Storage source, c10::SymInt offset, c10::SymIntArrayRef size,
                        c10::SymIntArrayRef stride) {
    auto *impl = self.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(std::move(source));
    impl->set_storage_offset(offset.guard_int(__FILE__, __LINE__));
    const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
    if (stride.data() && stride.size() == size.size())
        impl->set_sizes_and_strides(sizes, C10_AS_INTARRAYREF_SLOW(stride));
    else
        impl->set_sizes_contiguous(sizes);
    return self;
}
at::Tensor &set_whole_storage(at::Tensor &self, at::Storage source) {
    const auto count = static_cast<int64_t>(source.nbytes() / self.itemsize());
    self.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(source));
    self.unsafeGetTensorImpl()->set_storage_offset(0);
    self.unsafeGetTensorImpl()->set_sizes_contiguous({count});
    return self;
}
at::Tensor &set_tensor(at::Tensor &self, const at::Tensor &source) {
    return set_storage(self, source.storage(), source.sym_storage_offset(), source.sym_sizes(),
                       source.sym_strides());
}
void record_stream(at::Tensor &, at::Stream) {}

// A device multiplies halves exactly and rounds once; torch's CPU kernels round on the way.
bool is_short(const at::Tensor &tensor) {
    return tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16;
}
at::Tensor wide(const at::Tensor &tensor) {
    return is_short(tensor) ? on_host(tensor).to(at::kFloat) : on_host(tensor);
}
at::Tensor back(const at::Tensor &made, const at::Tensor &like) {
    return made.to(like.scalar_type()).to(like.device());
}
at::Tensor npu_mm(const at::Tensor &a, const at::Tensor &b) { return back(at::mm(wide(a), wide(b)), a); }
at::Tensor npu_bmm(const at::Tensor &a, const at::Tensor &b) { return back(at::bmm(wide(a), wide(b)), a); }
at::Tensor npu_addmm(const at::Tensor &c, const at::Tensor &a, const at::Tensor &b, const at::Scalar &beta,
                     const at::Scalar &alpha) {
    return back(at::addmm(wide(c), wide(a), wide(b), beta, alpha), a);
}
at::Tensor npu_baddbmm(const at::Tensor &c, const at::Tensor &a, const at::Tensor &b, const at::Scalar &beta,
                       const at::Scalar &alpha) {
    return back(at::baddbmm(wide(c), wide(a), wide(b), beta, alpha), a);
}
at::Tensor npu_mv(const at::Tensor &a, const at::Tensor &b) { return back(at::mv(wide(a), wide(b)), a); }
at::Tensor npu_dot(const at::Tensor &a, const at::Tensor &b) { return back(at::dot(wide(a), wide(b)), a); }
at::Tensor &keep(at::Tensor &out, const at::Tensor &made) {
    if (out.sizes() != made.sizes()) out.resize_(made.sizes());
    return out.copy_(made);
}
at::Tensor &mm_out(const at::Tensor &a, const at::Tensor &b, at::Tensor &out) {
    return keep(out, npu_mm(a, b));
}
at::Tensor &bmm_out(const at::Tensor &a, const at::Tensor &b, at::Tensor &out) {
    return keep(out, npu_bmm(a, b));
}
at::Tensor &addmm_out(const at::Tensor &c, const at::Tensor &a, const at::Tensor &b, const at::Scalar &beta,
                      const at::Scalar &alpha, at::Tensor &out) {
    return keep(out, npu_addmm(c, a, b, beta, alpha));
}

at::Tensor convolution(const at::Tensor &input, const at::Tensor &weight,
                       const std::optional<at::Tensor> &bias, at::IntArrayRef stride, at::IntArrayRef padding,
                       at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                       int64_t groups) {
    std::optional<at::Tensor> on_cpu;
    if (bias && bias->defined()) on_cpu = bias->cpu();
    return at::convolution(input.cpu(), weight.cpu(), on_cpu, stride, padding, dilation, transposed,
                           output_padding, groups)
        .to(input.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
convolution_backward(const at::Tensor &gradient, const at::Tensor &input, const at::Tensor &weight,
                     at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                     bool transposed, at::IntArrayRef output_padding, int64_t groups,
                     std::array<bool, 3> wanted) {
    const at::IntArrayRef bias = gradient.sizes().slice(1, 1);
    auto [to_input, to_weight, to_bias] =
        at::convolution_backward(gradient.cpu(), input.cpu(), weight.cpu(), bias, stride, padding, dilation,
                                 transposed, output_padding, groups, wanted);
    const auto home = [&](const at::Tensor &made) { return made.defined() ? made.to(input.device()) : made; };
    return {home(to_input), home(to_weight), home(to_bias)};
}

// Recurrent layers are made of fused cells that no CPU has: a layer is computed there as a whole, and its
// gradients go back through the copies.
void whole_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
    for (c10::IValue &value : *stack)
        if (value.isTensor() && value.toTensor().defined())
            value = value.toTensor().cpu();
        else if (value.isTensorList()) {
            std::vector<at::Tensor> on_cpu;
            for (const at::Tensor &one : value.toTensorVector()) on_cpu.push_back(one.cpu());
            value = on_cpu;
        }
    op.callBoxed(*stack);
    for (c10::IValue &value : *stack)
        if (value.isTensor() && value.toTensor().defined())
            value = value.toTensor().to(c10::Device(kNpu, t_device));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    for (const char *layer : {"lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input",
                              "rnn_tanh.data", "rnn_relu.input", "rnn_relu.data", "lstm_cell", "gru_cell"})
        m.impl(layer, torch::CppFunction::makeFromBoxedFunction<&whole_on_cpu>());
    m.impl("convolution_backward_overrideable", TORCH_FN(convolution_backward));
    m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
    m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
    m.impl("empty_like", TORCH_FN(empty_like));
    m.impl("convolution_overrideable", TORCH_FN(convolution));
    m.impl("empty.memory_format", TORCH_FN(empty));
    m.impl("empty_strided", TORCH_FN(empty_strided));
    m.impl("as_strided", TORCH_FN(as_strided));
    m.impl("view", TORCH_FN(view));
    m.impl("_reshape_alias", TORCH_FN(reshape_alias));
    m.impl("resize_", TORCH_FN(resize));
    m.impl("_copy_from", TORCH_FN(copy_from));
    m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
    m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
    m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
    m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
    m.impl("set_.source_Tensor", TORCH_FN(set_tensor));
    m.impl("unfold", TORCH_FN(at::native::unfold));
    m.impl("record_stream", TORCH_FN(record_stream));
    m.impl("mm", TORCH_FN(npu_mm));
    m.impl("mm.out", TORCH_FN(mm_out));
    m.impl("bmm", TORCH_FN(npu_bmm));
    m.impl("bmm.out", TORCH_FN(bmm_out));
    m.impl("addmm", TORCH_FN(npu_addmm));
    m.impl("addmm.out", TORCH_FN(addmm_out));
    m.impl("baddbmm", TORCH_FN(npu_baddbmm));
    m.impl("mv", TORCH_FN(npu_mv));
    m.impl("dot", TORCH_FN(npu_dot));
}

// A copy takes conjugated and negated tensors as they are: without this each would be copied to be resolved
// first.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, Negative, m) { m.impl("_copy_from", torch::CppFunction::makeFallthrough()); }

void on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack) { at::native::cpu_fallback(op, stack); }
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>()); }
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(mm, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(bmm, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(addmm, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(baddbmm, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
    KERNEL_PRIVATEUSEONE(softmax, int, fp32)
    KERNEL_PRIVATEUSEONE(layer_norm, fp32)
}

struct Start {
    Start() { at::RegisterPrivateUse1HooksInterface(new Hooks); }
} g_start;

} // namespace

extern "C" {
void insight_trace_set_stream(void *stream) { t_stream = stream; }
void *insight_trace_stream(void) { return t_stream; }
void insight_trace_set_device(int device) {
    t_device = static_cast<c10::DeviceIndex>(device);
    aclrtSetDevice(device);
}
int insight_trace_device(void) { return t_device; }
}

namespace c10_npu {
NPUStream getCurrentNPUStream(c10::DeviceIndex) { return NPUStream(t_stream); }
NPUStream getDefaultNPUStream(c10::DeviceIndex) { return NPUStream(nullptr); }
void setCurrentNPUStream(NPUStream stream) { t_stream = stream.stream(); }
NPUStream getNPUStreamFromPool(c10::DeviceIndex) {
    aclrtStream made = nullptr;
    aclrtCreateStream(&made);
    return NPUStream(made);
}
int GetDevice(int32_t *device) { return *device = t_device, 0; }
int SetDevice(c10::DeviceIndex device) { return t_device = device, 0; }
c10::DeviceIndex current_device() { return t_device; }
} // namespace c10_npu
