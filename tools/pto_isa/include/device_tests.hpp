// What a test program, its kernels and the driver agree on.
//
// A launch `kernel<...><<<blocks, ...>>>(arguments)` is rewritten to launch<ID>(blocks, [&] {
// kernel<...>(arguments); }). The kernels are compiled once per kind of core; the closure of a launch has the
// same layout in each object, and the mangled name of its type names it in all of them.
#pragma once

#include <cstdint>
#include <typeinfo>

extern "C" {
// kind: 0 cube, 1 vector. The object that is being loaded can run the launch named `key`.
void device_tests_kernel(int kind, const char *key, void (*call)(void *closure));
void device_tests_launch(const char *key, uint64_t blocks, void *closure);
// A test case that a test program has.
void device_tests_case(const char *suite, const char *name, void (*body)());
// A check of the running case that did not hold.
void device_tests_failed(const char *file, int line, const char *what);
const char *device_tests_suite_name();
const char *device_tests_case_name();
}

namespace device_tests {

#if defined(__DAV_CUBE__)
constexpr int kKind = 0;
#else
constexpr int kKind = 1;
#endif

template <int Id, class F> struct Named {};
template <int Id, class F> const char *key_of() { return typeid(Named<Id, F>).name(); }
template <int Id, class F> void call(void *closure) { (*static_cast<F *>(closure))(); }
template <int Id, class F> struct Known {
    Known() { device_tests_kernel(kKind, key_of<Id, F>(), &call<Id, F>); }
    static Known known;
};
template <int Id, class F> Known<Id, F> Known<Id, F>::known;

template <int Id, class F> void launch(uint64_t blocks, F closure) {
    (void)&Known<Id, F>::known;
    device_tests_launch(key_of<Id, F>(), blocks, &closure);
}

} // namespace device_tests
