// The part of the test framework that device tests use; the driver runs each case in a process of its own.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "device_tests.hpp"

namespace testing {

class TestInfo {
  public:
    const char *name() const { return device_tests_case_name(); }
    const char *test_suite_name() const { return device_tests_suite_name(); }
    const char *test_case_name() const { return device_tests_suite_name(); }
};

class UnitTest {
  public:
    static UnitTest *GetInstance() {
        static UnitTest unit;
        return &unit;
    }
    const TestInfo *current_test_info() const { return &info_; }

  private:
    TestInfo info_;
};

class Test {
  public:
    virtual ~Test() = default;
    static void SetUpTestSuite() {}
    static void TearDownTestSuite() {}
    static void SetUpTestCase() {}
    static void TearDownTestCase() {}
    virtual void SetUp() {}
    virtual void TearDown() {}
    virtual void TestBody() = 0;
};

template <class Case> void run() {
    Case::SetUpTestSuite();
    Case::SetUpTestCase();
    {
        Case test;
        Test &base = test;
        base.SetUp();
        base.TestBody();
        base.TearDown();
    }
    Case::TearDownTestCase();
    Case::TearDownTestSuite();
}

struct Registered {
    Registered(const char *suite, const char *name, void (*body)()) { device_tests_case(suite, name, body); }
};

// Takes what a check streams behind it, and says that the check failed.
class Failed {
  public:
    Failed(const char *file, int line, const char *what) : file_(file), line_(line) { text_ << what << ' '; }
    ~Failed() { device_tests_failed(file_, line_, text_.str().c_str()); }
    template <class T> Failed &operator<<(const T &value) {
        text_ << value;
        return *this;
    }
    Failed &operator<<(std::ostream &(*)(std::ostream &)) { return *this; }

  private:
    const char *file_;
    int line_;
    std::ostringstream text_;
};
struct Leave {
    void operator=(const Failed &) {}
};

inline void InitGoogleTest(int *, char **) {}
inline void InitGoogleTest() {}

} // namespace testing

inline int RUN_ALL_TESTS() { return 0; }

#define DEVICE_TESTS_CASE(suite, name, base)                                                                 \
    class suite##_##name##_Test : public base {                                                              \
        void TestBody() override;                                                                            \
        template <class Case> friend void ::testing::run();                                                  \
    };                                                                                                       \
    static ::testing::Registered suite##_##name##_registered(#suite, #name,                                  \
                                                             &::testing::run<suite##_##name##_Test>);        \
    void suite##_##name##_Test::TestBody()
#define TEST_F(suite, name) DEVICE_TESTS_CASE(suite, name, suite)
#define TEST(suite, name)   DEVICE_TESTS_CASE(suite, name, ::testing::Test)

#define DEVICE_TESTS_EXPECT(holds, text)                                                                     \
    if (holds)                                                                                               \
        ;                                                                                                    \
    else                                                                                                     \
        ::testing::Failed(__FILE__, __LINE__, text)
#define DEVICE_TESTS_ASSERT(holds, text)                                                                     \
    if (holds)                                                                                               \
        ;                                                                                                    \
    else                                                                                                     \
        return ::testing::Leave() = ::testing::Failed(__FILE__, __LINE__, text)

#define SCOPED_TRACE(text)
#define EXPECT_TRUE(value)  DEVICE_TESTS_EXPECT((value), #value " is false")
#define EXPECT_FALSE(value) DEVICE_TESTS_EXPECT(!(value), #value " is true")
#define EXPECT_EQ(a, b)     DEVICE_TESTS_EXPECT((a) == (b), #a " == " #b " does not hold")
#define EXPECT_NE(a, b)     DEVICE_TESTS_EXPECT((a) != (b), #a " != " #b " does not hold")
#define EXPECT_LT(a, b)     DEVICE_TESTS_EXPECT((a) < (b), #a " < " #b " does not hold")
#define EXPECT_LE(a, b)     DEVICE_TESTS_EXPECT((a) <= (b), #a " <= " #b " does not hold")
#define EXPECT_GT(a, b)     DEVICE_TESTS_EXPECT((a) > (b), #a " > " #b " does not hold")
#define EXPECT_GE(a, b)     DEVICE_TESTS_EXPECT((a) >= (b), #a " >= " #b " does not hold")
#define ASSERT_TRUE(value)  DEVICE_TESTS_ASSERT((value), #value " is false")
#define ASSERT_FALSE(value) DEVICE_TESTS_ASSERT(!(value), #value " is true")
#define ASSERT_EQ(a, b)     DEVICE_TESTS_ASSERT((a) == (b), #a " == " #b " does not hold")
#define ASSERT_NE(a, b)     DEVICE_TESTS_ASSERT((a) != (b), #a " != " #b " does not hold")
#define ASSERT_LT(a, b)     DEVICE_TESTS_ASSERT((a) < (b), #a " < " #b " does not hold")
#define ASSERT_LE(a, b)     DEVICE_TESTS_ASSERT((a) <= (b), #a " <= " #b " does not hold")
#define ASSERT_GT(a, b)     DEVICE_TESTS_ASSERT((a) > (b), #a " > " #b " does not hold")
#define ASSERT_GE(a, b)     DEVICE_TESTS_ASSERT((a) >= (b), #a " >= " #b " does not hold")
#define ADD_FAILURE()       ::testing::Failed(__FILE__, __LINE__, "failed")
#define FAIL()              return ::testing::Leave() = ::testing::Failed(__FILE__, __LINE__, "failed")
#define SUCCEED()           DEVICE_TESTS_EXPECT(true, "")
#define GTEST_SKIP()        return ::testing::Leave() = ::testing::Failed(__FILE__, __LINE__, "skipped")
