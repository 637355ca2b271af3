// SPDX-License-Identifier: Apache-2.0
//
// The extensions of arg_spec over the reference: optional and variadic parameters, tokens, the device's ordinal,
// scratch memory. In handlers that the real compilers have built.
#include <dlfcn.h>

#include <cmath>

#include "tests/support/kernel_runner.h"

namespace kernix::language {
namespace {

namespace ffi = kernix_ffi_abi;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kKernels[] = R"(
#include "brainevent/common.h"
#include <stdio.h>
template <typename... Values>
void Print(BE::Tensor out, const char* format, Values... values) { snprintf(out.data_ptr<char>(), 256, format, values...); }
static float First(const BE::Tensor& x) { return *x.data_ptr<const float>(); }

// @BE maybe
void maybe(const BE::Tensor a, const BE::Tensor* b, BE::Tensor out, const BE::Tensor* c) {
  Print(out, "%g %g %g", First(a), b ? First(*b) : -1, c ? First(*c) : -1);
}
// @BE all
void all(BE::Span<const BE::Tensor> xs, BE::Tensor out) {
  float sum = 0;
  for (const BE::Tensor& x : xs) sum += First(x);
  Print(out, "%zu: %g", xs.size(), sum);
}
// @BE middle
void middle(const BE::Tensor a, BE::Tensor out, const BE::Span<const BE::Tensor>& xs, const BE::Tensor& z,
            BE::Span<BE::Tensor> outs, int n) {
  for (BE::Tensor& each : outs) *each.data_ptr<float>() = First(a);
  Print(out, "%g %zu %g %g %d %zu", First(a), xs.size(), xs.empty() ? -1 : First(xs[0]), First(z), n, outs.size());
}
// @BE ordered arg.token arg ret ret.token args...
void ordered(const BE::Tensor a, BE::Tensor out, BE::Span<const BE::Tensor> xs) {
  Print(out, "%g %zu", First(a), xs.size());
}
// @BE effect ret.token arg
void effect(const BE::Tensor a) { ++*a.data_ptr<float>(); }
// @BE where
void where(BE::Tensor out, int device_ordinal) { Print(out, "%d", device_ordinal); }
// @BE room ret arg scratch:n*arg0.numel() attr.n:int32 scratch:64
void room(BE::Tensor out, const BE::Tensor x, BE::Scratch a, int n, const BE::Scratch& b) {
  for (size_t i = 0; i < a.size(); ++i) a.as<char>()[i] = 1;
  if (n == 13) throw std::runtime_error("after the scratch");
  Print(out, "%zu %d %d %d %zu", a.size(), (int)((uintptr_t)a.data() % 64), a.data() == nullptr, n + x.ndim(), b.size());
}
static int64_t Workspace(const BE::Tensor& x, std::string_view s, BE::Span<const int> k, BE::Span<const BE::Tensor> rest) {
  return x.numel() + (int64_t)s.size() * 10 + k[0] * 100 + (int64_t)rest.size() * 1000;
}
// @BE named args... ret attr.s:string attr.k:int32[] scratch:Workspace(ret0,s,k,args)+(args.size()>0?args[0].ndim():0)
void named(BE::Span<const BE::Tensor>, BE::Tensor out, std::string_view, BE::Span<const int>, BE::Scratch a) {
  Print(out, "%zu", a.size());
}
// @BE chosen arg? ret scratch:arg0==nullptr?7:arg0->numel()
void chosen(const BE::Tensor*, BE::Tensor out, BE::Scratch a) { Print(out, "%zu", a.size()); }
)";

class ExtendedTest : public testing::Test {
 protected:
  static void* Library() {
    static Workshop workshop;
    static void* library = workshop.Open(kKernels);
    return library;
  }

  // Calls `function` with arguments of one float each, and a text as result. Returns the text or the error.
  std::string With(const std::string& function, std::vector<float> arguments) {
    FakeCall call;
    for (float& argument : arguments) call.Argument(&argument, {1}, ffi::kF32);
    return Run(call, function);
  }

  std::string Run(FakeCall& call, const std::string& function, void* library = Library()) {
    char text[256] = {};
    const std::string error = call.Result(text, {256}, ffi::kU8).Call(library, "kernix_handler_" + function);
    return error.empty() ? text : error;
  }

  float one_ = 1, two_ = 2, three_ = 3;
};

TEST_F(ExtendedTest, OptionalArgumentsMayBeMissing) {
  EXPECT_EQ(With("maybe", {1}), "1 -1 -1");
  EXPECT_EQ(With("maybe", {1, 2}), "1 2 -1");
  EXPECT_EQ(With("maybe", {1, 2, 3}), "1 2 3");
  EXPECT_EQ(With("maybe", {}), Misfit("3: maybe: expected 1 to 3 arguments, got 0"));
  EXPECT_EQ(With("maybe", {1, 2, 3, 4}), Misfit("3: maybe: expected 1 to 3 arguments, got 4"));
}

TEST_F(ExtendedTest, SpansTakeWhatIsLeftOver) {
  EXPECT_EQ(With("all", {}), "0: 0");
  EXPECT_EQ(With("all", {1, 2, 3}), "3: 6");
  EXPECT_EQ(With("all", std::vector<float>(1000, 1)), "1000: 1000");
  FakeCall call;
  float more[2] = {};
  char text[256] = {};
  call.Argument(&one_, {1}, ffi::kF32).Argument(&two_, {1}, ffi::kF32).Argument(&three_, {1}, ffi::kF32);
  call.Attribute("n", int32_t{5}, ffi::kS32).Result(text, {256}, ffi::kU8);
  call.Result(&more[0], {1}, ffi::kF32).Result(&more[1], {1}, ffi::kF32);
  EXPECT_EQ(call.Call(Library(), "kernix_handler_middle"), "");
  EXPECT_STREQ(text, "1 1 2 3 5 2");
  EXPECT_THAT(more, testing::ElementsAre(1, 1));
  FakeCall fewest;
  fewest.Argument(&one_, {1}, ffi::kF32).Argument(&two_, {1}, ffi::kF32).Attribute("n", int32_t{5}, ffi::kS32);
  EXPECT_EQ(Run(fewest, "middle"), "1 0 -1 2 5 0");
}

TEST_F(ExtendedTest, SpansCountWhatTheOthersNeed) {
  EXPECT_EQ(With("middle", {1}), Misfit("3: middle: expected at least 2 arguments, got 1"));
  FakeCall none;
  EXPECT_EQ(
      none.Argument(&one_, {1}, ffi::kF32).Argument(&one_, {1}, ffi::kF32).Call(Library(), "kernix_handler_middle"),
      Misfit("3: middle: expected at least 1 result, got 0"));
  FakeCall rank;
  EXPECT_EQ(Run(rank.Argument(&one_, std::vector<int64_t>(9, 1), ffi::kF32), "all"),
            "3: all: argument 0 has 9 dimensions; BE::Tensor holds at most 8");
}

TEST_F(ExtendedTest, TokensAreNoParameters) {
  char text[256] = {};
  FakeCall call;
  call.Argument(nullptr, {}, ffi::kToken).Argument(&two_, {1}, ffi::kF32).Argument(&one_, {1}, ffi::kF32);
  call.Result(text, {256}, ffi::kU8).Result(nullptr, {}, ffi::kToken);
  EXPECT_EQ(call.Call(Library(), "kernix_handler_ordered"), "");
  EXPECT_STREQ(text, "2 1");
  FakeCall effect;
  EXPECT_EQ(
      effect.Argument(&one_, {1}, ffi::kF32).Result(nullptr, {}, ffi::kToken).Call(Library(), "kernix_handler_effect"),
      "");
  EXPECT_EQ(one_, 2);
}

TEST_F(ExtendedTest, TokensAndArraysAreNotMixedUp) {
  FakeCall array, token, rest;
  array.Argument(&one_, {1}, ffi::kF32).Argument(&one_, {1}, ffi::kF32);
  EXPECT_EQ(Run(array.Result(nullptr, {}, ffi::kToken), "ordered"),
            "3: ordered: argument 0 must be a token, not an array");
  token.Argument(nullptr, {}, ffi::kToken).Argument(nullptr, {}, ffi::kToken).Result(nullptr, {}, ffi::kToken);
  EXPECT_EQ(Run(token, "ordered"), "3: ordered: argument 1 must be an array, not a token");
  rest.Argument(&one_, {1}, ffi::kF32).Argument(nullptr, {}, ffi::kToken);
  EXPECT_EQ(Run(rest, "all"), "3: all: argument 1 must be an array, not a token");
}

TEST_F(ExtendedTest, TellsTheDevice) {
  FakeCall third, old;
  EXPECT_EQ(Run(third.DeviceOrdinal(3), "where"), "3");
  EXPECT_EQ(
      Run(old.OldRuntime(), "where"),
      "12: where: 'device_ordinal' needs XLA_FFI_DeviceOrdinal_Get of XLA's FFI, which this runtime does not have: "
      "use jaxlib 0.6.0 or newer");
}

std::string Room(int32_t n, void* library, FakeCall& call) {
  float x[6] = {};
  char text[256] = {};
  call.Argument(x, {2, 3}, ffi::kF32).Result(text, {256}, ffi::kU8).Attribute("n", n, ffi::kS32);
  const std::string error = call.Call(library, "kernix_handler_room");
  return error.empty() ? text : error;
}

TEST_F(ExtendedTest, ScratchOnTheHostIsAligned) {
  for (const bool old : {false, true}) {
    FakeCall some, none, negative, throws, huge;
    if (old) some.OldRuntime();
    EXPECT_EQ(Room(4, Library(), some), "24 0 0 6 64");
    EXPECT_EQ(Room(0, Library(), none), "0 0 1 2 64");
    EXPECT_EQ(Room(-1, Library(), negative), "3: room: scratch memory of -6 bytes");
    EXPECT_EQ(Room(13, Library(), throws), "13: room: threw std::runtime_error: after the scratch");
  }
}

TEST_F(ExtendedTest, ScratchKnowsTheOtherParameters) {
  FakeCall call, chosen;
  call.Argument(&one_, {1, 1}, ffi::kF32).Argument(&two_, {1}, ffi::kF32);
  call.StringAttribute("s", "abc").ArrayAttribute<int32_t>("k", {4}, ffi::kS32);
  EXPECT_EQ(Run(call, "named"), "2688");  // 256 + 3 * 10 + 4 * 100 + 2 * 1000 + 2
  FakeCall error;
  EXPECT_EQ(Run(error.StringAttribute("s", "abc").ArrayAttribute<int32_t>("k", {}, ffi::kS32), "named"),
            "13: named: BE::Span has no element 0");
  EXPECT_EQ(With("chosen", {}), "7");
  EXPECT_EQ(With("chosen", {1}), "1");
}

// Sizes that plain C++ would compute differently, or not at all.
constexpr char kSizes[] = R"(
#include "brainevent/common.h"
#include <algorithm>
#include <cmath>
#include <stdio.h>
static void Print(BE::Tensor out, const BE::Scratch& a) { snprintf(out.data_ptr<char>(), 256, "%zu", a.size()); }
constexpr int W = 65536;
enum { kEight = 8 };
template <typename T> constexpr int kBytes = sizeof(T);
template <typename T> static T Twice(T n) { return n + n; }
static size_t Aligned(size_t n) { return (n + 255) / 256 * 256; }
static int Small(int n) { return n; }
static const int kTable[] = {10, 20};
inline size_t Need(int) { return 1000; }
inline size_t Need(int64_t n) { return n; }
template <typename T> static size_t BytesOf(T) { return sizeof(T); }
enum Kind { kFloat = 4, kDouble = 8 };
inline size_t OfKind(Kind kind) { return kind; }
inline int Flagged(bool flag) { return flag ? 100 : 0; }
inline int Flagged(int64_t) { return 5; }
#define PAD 8+8
#define MACRO(n) n*n
#define OF_MACRO(n) BytesOf(n)
// @BE square ret attr.n:int64 scratch:(W*W)/W*kEight
void square(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE product ret attr.n:int64 scratch:64*n+arg0.size(0) arg
void product(BE::Tensor out, int64_t, BE::Scratch a, const BE::Tensor) { Print(out, a); }
// @BE mixed ret attr.n:int64 scratch:Aligned((size_t)n*kBytes<float>)+std::max<int64_t>(n,3)+kTable[n>2]+Twice(n)+sizeof(double)
void mixed(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE casted ret attr.n:int64 scratch:(n+255)&~size_t(255)
void casted(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE small ret attr.n:int64 scratch:Small(n)*n
void small(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE divided ret attr.n:int64 scratch:(1<<20)/n
void divided(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE shifted ret attr.n:int64 scratch:1<<n
void shifted(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE macro ret attr.n:int64 scratch:MACRO(n)
void macro(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE real ret attr.x:float64 scratch:x*3
void real(BE::Tensor out, double, BE::Scratch a) { Print(out, a); }
// @BE root ret attr.n:int64 scratch:4*std::sqrt(n)+std::abs(-n)
void root(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE overloaded ret attr.n:int64 scratch:Need(n)+Need(n*2)
void overloaded(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE typed ret attr.n:int64 scratch:BytesOf(n)+BytesOf(n+1)+(BytesOf)(W)+(int8_t)(n+256)
void typed(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE chosen ret attr.n:int64 scratch:OfKind(kFloat)+OfKind(kDouble)*n+Flagged(n>4)+Flagged(true)
void chosen(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE padded ret attr.n:int64 scratch:4*PAD+n*-PAD
void padded(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE mean ret attr.n:int64 scratch:n>4?n:n*1.5
void mean(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE texts ret attr.n:int64 scratch:MACRO(n+2)+2*OF_MACRO(n)
void texts(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE signs ret attr.n:int64 scratch:-~n*!!n+(!n?1:-(-n))
void signs(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
// @BE either ret attr.n:int64 scratch:n>4&&n<10?16:n==0?Small(7):32
void either(BE::Tensor out, int64_t, BE::Scratch a) { Print(out, a); }
)";

class ScratchSizeTest : public ExtendedTest {
 protected:
  std::string Size(const std::string& function, int64_t n) {
    FakeCall call;
    if (function == "product") call.Argument(&one_, {5}, ffi::kF32);
    return Run(call.Attribute("n", n, ffi::kS64), function, Library());
  }
  std::string Real(double x) {
    FakeCall call;
    return Run(call.Attribute("x", x, ffi::kF64), "real", Library());
  }
  static void* Library() {
    static Workshop workshop;
    static void* library = workshop.Open(kSizes, {"-Wall", "-Wextra", "-Werror"});
    return library;
  }
};

TEST_F(ScratchSizeTest, IsComputedIn64Bits) {
  EXPECT_EQ(Size("square", 0), "524288");
  EXPECT_EQ(Size("product", 2), "133");
  EXPECT_EQ(Size("mixed", 3), "293");  // 256 + 3 + 20 + 6 + 8
  EXPECT_EQ(Size("casted", 300), "512");
  EXPECT_EQ(Size("small", 300), "90000");
  EXPECT_EQ(Size("divided", 4), "262144");
  EXPECT_EQ(Size("shifted", 20), "1048576");
  EXPECT_EQ(Size("macro", 3), "9");
  EXPECT_EQ(Size("either", 5) + Size("either", 0) + Size("either", 20), "16732");
  EXPECT_EQ(Real(1.5), "4");
}

// Operators at the top level of the expression compute in 64 bits. A function's arguments are plain C++, and a macro is
// its text.
TEST_F(ScratchSizeTest, MeansWhatCppSays) {
  EXPECT_EQ(Size("root", 9), "21");
  EXPECT_EQ(Size("overloaded", 9), "27");
  EXPECT_EQ(Size("typed", 7), "27");  // 8 + 8 + 4 + 7
  EXPECT_EQ(Size("chosen", 5), "244");
  EXPECT_EQ(Size("padded", 3), "24");  // 4*8+8 + 3*-8+8
  EXPECT_EQ(Size("mean", 4) + " " + Size("mean", 5), "6 5");
  EXPECT_EQ(Size("signs", 5) + " " + Size("signs", 0), "11 1");
  EXPECT_EQ(Size("texts", 5), "33");  // 5+2*5+2 + 2*8
}

TEST_F(ScratchSizeTest, DoesNotOverflow) {
  EXPECT_EQ(Size("product", int64_t{1} << 62),
            "3: product: 'scratch:64*n+arg0.size(0)' has no value: some number in it does not fit a signed integer of "
            "64 bits, or is divided by 0");
  EXPECT_THAT(Size("mixed", int64_t{1} << 61), HasSubstr("has no value"));
  EXPECT_THAT(Size("casted", INT64_MAX), HasSubstr("has no value"));
  EXPECT_THAT(Size("macro", int64_t{1} << 32), HasSubstr("has no value"));
  EXPECT_THAT(Size("divided", 0), HasSubstr("has no value"));
  EXPECT_THAT(Size("signs", INT64_MIN), HasSubstr("has no value"));
  EXPECT_THAT(Size("shifted", 64), HasSubstr("has no value"));
  EXPECT_THAT(Size("shifted", -1), HasSubstr("has no value"));
  EXPECT_THAT(Real(NAN), HasSubstr("has no value"));
  EXPECT_THAT(Real(1e30), HasSubstr("has no value"));
}

TEST_F(ScratchSizeTest, CompilesInOtherDialects) {
  Workshop workshop;
  for (const char* dialect : {"-std=c++20", "-std=gnu++23"}) {
    const Outcome outcome =
        workshop.Compile("c++", Generate("k.cpp", kSizes), {dialect, "-fsyntax-only", "-Wall", "-Wextra", "-Werror"});
    EXPECT_EQ(outcome.exit_code, 0) << dialect << outcome.output;
  }
  const std::optional<std::string> nvcc = FindNvcc();
  if (!nvcc.has_value()) GTEST_SKIP() << "no nvcc";
  const Outcome outcome = workshop.Compile(*nvcc, Generate("k.cu", kSizes, v1::LANGUAGE_CUDA),
                                           {"-std=c++17", "-c", "-o", "/dev/null", "-arch=sm_80"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

// Scratch memory of a CUDA function; in this test, the "device" memory is the host's.
class DeviceScratchTest : public ExtendedTest {
 protected:
  static void* CudaLibrary() {
    static Workshop workshop;
    static void* library = [] {
      const std::string path = workshop.path() + "/cuda.so";
      const std::string unit = Generate("k.cu", kKernels, v1::LANGUAGE_CUDA);
      const Outcome outcome =
          workshop.Compile("c++", unit, {workshop.HandlerRuntime(), "-std=c++17", "-fPIC", "-shared", "-o", path});
      EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
      return dlopen(path.c_str(), RTLD_NOW);
    }();
    return library;
  }
};

TEST_F(DeviceScratchTest, ComesFromTheRuntimeAndGoesBack) {
  FakeCall call, throws;
  EXPECT_THAT(Room(4, CudaLibrary(), call), HasSubstr("24 "));
  EXPECT_EQ(call.allocated(), std::vector<size_t>({24, 64}));
  EXPECT_EQ(call.freed(), std::vector<size_t>({64, 24}));
  EXPECT_EQ(Room(13, CudaLibrary(), throws), "13: room: threw std::runtime_error: after the scratch");
  EXPECT_EQ(throws.freed(), std::vector<size_t>({64, 78}));
}

TEST_F(DeviceScratchTest, ErrorsOfTheRuntimeComeBack) {
  FakeCall exhausted, failing, old;
  EXPECT_EQ(Room(4, CudaLibrary(), exhausted.DeviceMemory(30)), "8: out of device memory");
  EXPECT_EQ(exhausted.freed(), std::vector<size_t>({24}));
  EXPECT_EQ(Room(4, CudaLibrary(), failing.FreeFails()), "13: cannot free");
  EXPECT_EQ(failing.created() - failing.destroyed(), 1);
  EXPECT_EQ(Room(4, CudaLibrary(), old.OldRuntime()),
            "12: room: 'scratch' needs XLA_FFI_DeviceMemory_Allocate of XLA's FFI, which this runtime does not have: "
            "use jaxlib 0.6.0 or newer");
}

// A captured graph would continue to use memory that by then belongs to something else.
TEST_F(DeviceScratchTest, IsNotCapturedIntoGraphs) {
  const std::string unit = Generate("k.cu", kKernels, v1::LANGUAGE_CUDA);
  const auto signature_of = [&unit](const std::string& name) {
    const size_t begin = unit.find("{{\"" + name + "\"");
    return unit.substr(begin, unit.find('\n', begin) - begin);
  };
  EXPECT_THAT(signature_of("room"), testing::Not(HasSubstr("kCommandBufferCompatible")));
  EXPECT_THAT(signature_of("all"), HasSubstr("kCommandBufferCompatible"));
}

TEST(ScratchErrorTest, PointsAtTheAnnotation) {
  Workshop workshop;
  const std::string unit = Generate("mine.cpp",
                                    "#include \"brainevent/common.h\"\n\n// @BE f ret scratch:ret0.nonsense()\n"
                                    "void f(BE::Tensor, BE::Scratch) {}\n");
  const Outcome outcome = workshop.Compile("c++", unit, {"-std=c++17", "-fsyntax-only"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("mine.cpp:3:"), HasSubstr("kernix_scratch0_of_f"), HasSubstr("nonsense")));
}

TEST(ExtendedHeadersTest, CompileUnderNvccAndInOtherDialects) {
  Workshop workshop;
  const std::string unit = Generate("k.cpp", kKernels);
  for (const char* dialect : {"-std=c++17", "-std=c++20", "-std=gnu++23"}) {
    const Outcome outcome = workshop.Compile("c++", unit, {dialect, "-fsyntax-only", "-Wall", "-Wextra", "-Werror"});
    EXPECT_EQ(outcome.exit_code, 0) << dialect << outcome.output;
  }
  const std::string no_throw = Generate("k.cpp",
                                        "// @BE f args... rets... scratch:8\nvoid f(BE::Span<const BE::Tensor>, "
                                        "BE::Span<BE::Tensor>, BE::Scratch) {}");
  const Outcome bare = workshop.Compile(
      "c++", no_throw, {"-std=c++17", "-fsyntax-only", "-fno-exceptions", "-Wall", "-Wextra", "-Werror"});
  EXPECT_EQ(bare.exit_code, 0) << bare.output;
  const std::optional<std::string> nvcc = FindNvcc();
  if (!nvcc.has_value()) GTEST_SKIP() << "no nvcc";
  const Outcome outcome =
      workshop.Compile(*nvcc, Generate("k.cu", kKernels, v1::LANGUAGE_CUDA),
                       {"-std=c++17", "-c", "-o", "/dev/null", "-Xcompiler", "-Wall,-Wextra,-Werror", "-arch=sm_80"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

}  // namespace
}  // namespace kernix::language
