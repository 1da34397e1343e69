// Launches that an extension hands over by name.
#pragma once

#include <functional>
#include <string>

#include "torch_npu/csrc/core/npu/NPUStream.h"

namespace at_npu {
namespace native {

class OpCommand {
  public:
    // At once: launches wait in no queue here.
    template <class Call> static void RunOpApi(const std::string &, Call call, bool = false) { call(); }
    template <class Call> static void RunOpApiV2(const std::string &, Call call, bool = false) { call(); }
    template <class Call> static void RunOpApiV3(const std::string &, Call call, bool = false) { call(); }
    OpCommand &Name(const std::string &) { return *this; }
    template <class Call> OpCommand &SetCustomHandler(Call call) {
        call_ = call;
        return *this;
    }
    void Run() {
        if (call_) call_();
    }

  private:
    std::function<int()> call_;
};

} // namespace native
} // namespace at_npu
