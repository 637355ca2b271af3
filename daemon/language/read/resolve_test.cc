// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/read/resolve.h"

#include <string>

#include "common/base/error.h"
#include "common/base/strings.h"
#include "daemon/language/read/function_name.h"
#include "daemon/language/spec/function_spec.h"
#include "daemon/language/spec/words.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <typename M>
auto IsInvalid(const M& message) {
  return HasError(absl::StatusCode::kInvalidArgument, message);
}

// The resolved functions as "name: tokens; ...".
std::string Described(const absl::StatusOr<std::vector<FunctionSpec>>& specs) {
  if (!specs.ok()) return std::string(ToStd(specs.status().message()));
  std::string text;
  for (const FunctionSpec& spec : *specs) {
    StrAppend(&text, text.empty() ? "" : "; ", spec.name, ":");
    for (const std::string& token : spec.Tokens()) StrAppend(&text, " ", token);
  }
  return text;
}

absl::StatusOr<std::vector<FunctionSpec>> Annotated(const std::string& text) {
  v1::Functions functions;
  functions.set_from_annotations(true);
  return ResolveFunctions({{"k.cu", text}}, functions);
}

// Each element of `list` is "name" or "name token token".
absl::StatusOr<std::vector<FunctionSpec>> Listed(const std::string& text, const std::vector<std::string>& list) {
  v1::Functions functions;
  for (const std::string& entry : list) {
    v1::Function* function = functions.add_function();
    const size_t length = FunctionNameLength(entry);
    function->set_name(entry.substr(0, length));
    for (const std::string_view token : Words(std::string_view(entry).substr(length)))
      function->add_tokens(std::string(token));
  }
  return ResolveFunctions({{"k.cu", text}}, functions);
}

std::string Inferred(const std::string& parameters) {
  return Described(Listed("void f(" + parameters + ") {}", {"f"}));
}

// ---- Annotations ----

TEST(AnnotationTest, TokensOrSignatureDecide) {
  EXPECT_EQ(Described(Annotated("// @BE f args rets ctx.stream\nvoid f(BE::Tensor a, BE::Tensor b, int64_t s) {}")),
            "f: arg ret stream");
  EXPECT_EQ(Described(Annotated("// @BE f\nvoid f(const BE::Tensor a, BE::Tensor b) {}")), "f: arg ret");
  EXPECT_EQ(Described(Annotated("// @BE f arg ret attr.scale\nvoid f(BE::Tensor a, BE::Tensor b, float scale) {}")),
            "f: arg ret attr.scale:float32");
}

TEST(AnnotationTest, KeepsTheOrderOfTheSource) {
  EXPECT_EQ(Described(Annotated("//@BE b\nvoid b(BE::Tensor o);\n///   @BE   a\nvoid a(BE::Tensor o);")),
            "b: ret; a: ret");
}

TEST(AnnotationTest, IsALineCommentThatBeginsWithIt) {
  const std::string function = "\nvoid f(BE::Tensor o) {}";
  for (const char* other : {"/* // @BE g */", "const char* s = \"// @BE g\";", "// see // @BE g", "// @BEg", "// BE g",
                            "#if 0\n// @BE g\n#endif", "const char* s = R\"(\n// @BE g\n)\";", "// @BE-style notes"}) {
    EXPECT_EQ(Described(Annotated(other + std::string("\n// @BE f") + function)), "f: ret") << other;
  }
}

TEST(AnnotationTest, GoesOnAfterABackslash) {
  EXPECT_EQ(Described(Annotated("// @BE f ret \\\n   attr.x\nvoid f(BE::Tensor o, float x) {}")),
            "f: ret attr.x:float32");
}

TEST(AnnotationTest, NeedsAFunction) {
  EXPECT_THAT(Annotated("\n// @BE\nvoid f(BE::Tensor o);"),
              IsInvalid(HasSubstr("k.cu:2: an annotation without a function")));
  EXPECT_THAT(Annotated("void f(BE::Tensor o);\n// @BE g"), IsInvalid(AllOf(HasSubstr("k.cu:2"), HasSubstr("'g'"))));
  EXPECT_THAT(Annotated("void f(BE::Tensor o);\n// @BE g arg ret"),
              IsInvalid(HasSubstr("k.cu:2: an annotation without a function: nothing here defines 'g'")));
  EXPECT_THAT(Annotated("void f(BE::Tensor o);"), IsInvalid(HasSubstr("no '// @BE <function>' annotation")));
}

TEST(AnnotationTest, MayBeAnsweredByAHeader) {
  EXPECT_EQ(Described(Annotated("#include \"kernels.cuh\"\n// @BE g arg ret")), "g: arg ret");
  EXPECT_EQ(Described(Annotated("#include <kernels.cuh>\n// @BE g_f32 arg ret\nMAKE_G(_f32)")), "g_f32: arg ret");
  EXPECT_THAT(Annotated("#include \"brainevent/common.h\"\n// @BE g arg ret"), IsInvalid(HasSubstr("'g'")));
}

TEST(AnnotationTest, ReportsItsLine) {
  const std::string function = "void f(BE::Tensor o);\n";
  EXPECT_THAT(Annotated(function + "// @BE f ret what"),
              IsInvalid(HasSubstr("k.cu:2: function 'f': unknown token 'what'")));
  EXPECT_THAT(Annotated(function + "// @BE 9f ret"), IsInvalid(HasSubstr("k.cu:2: the function name '9f'")));
  EXPECT_THAT(Annotated("// @BE f\n" + function + "// @BE f"),
              IsInvalid(HasSubstr("k.cu:3: function 'f' is exported twice")));
}

// ---- Lists ----

TEST(ListTest, MixesTokensAndInference) {
  EXPECT_EQ(Described(Listed("void a(BE::Tensor o); void b(const BE::Tensor i, BE::Tensor o);", {"b", "a ret"})),
            "b: arg ret; a: ret");
}

TEST(ListTest, RefusesBadLists) {
  const std::string source = "void f(BE::Tensor o);";
  EXPECT_THAT(Listed(source, {}), IsInvalid(HasSubstr("nothing to export")));
  EXPECT_THAT(Listed(source, {"f", "f"}), IsInvalid(HasSubstr("'f' is exported twice")));
  EXPECT_THAT(Listed(source, {"f;"}), IsInvalid(HasSubstr("'f;' is not a C++ identifier")));
  EXPECT_THAT(Listed(source, {"f arg"}), IsInvalid(HasSubstr("no 'ret'")));
  EXPECT_THAT(Listed(source, {"f ret stream stream"}), IsInvalid(HasSubstr("duplicate 'stream'")));
  EXPECT_EQ(KindOf(Listed(source, {}).status()), v1::ErrorDetail::INVALID_REQUEST);
}

TEST(ListTest, RefusesEmptySources) {
  EXPECT_THAT(Listed("", {"f ret"}), IsInvalid(HasSubstr("k.cu: the source is empty")));
  EXPECT_THAT(Listed("// nothing\n/* at all */\n", {"f ret"}), IsInvalid(HasSubstr("empty")));
  v1::Functions functions;
  EXPECT_THAT(ResolveFunctions({}, functions), IsInvalid(HasSubstr("no source")));
}

TEST(ListTest, ExplicitTokensNeedNoSignature) {
  EXPECT_EQ(Described(Listed("#include \"f.h\"", {"f arg ret"})), "f: arg ret");
}

TEST(ListTest, TokensMustFitTheSignature) {
  const std::string source = "\nvoid f(const BE::Tensor a, BE::Tensor b, float x, int n = 3) {}";
  EXPECT_EQ(Described(Listed(source, {"f arg ret attr.x"})), "f: arg ret attr.x:float32");
  EXPECT_THAT(Listed(source, {"f arg ret"}),
              IsInvalid(HasSubstr("function 'f' (k.cu:2) has 4 parameters, but its arg_spec has 2 (arg ret)")));
  EXPECT_THAT(Listed(source, {"f arg ret attr.x attr.n stream"}), IsInvalid(HasSubstr("has 4 parameters")));
  EXPECT_THAT(Listed(source, {"f arg ret ret attr.n"}),
              IsInvalid(HasSubstr("takes 'float x' as parameter 3, but its arg_spec says 'ret' there")));
  EXPECT_THAT(Listed(source, {"f arg attr.x ret attr.n"}), IsInvalid(HasSubstr("takes 'BE::Tensor b' as parameter 2")));
}

TEST(ListTest, TypesThatNoValueReachesAreRefused) {
  struct Case {
    std::string parameter, token, problem;
  };
  for (const Case& c : std::vector<Case>{
           {"const float* x", "arg:float32", "take a BE::In<float>: 'BE::In<float> x'"},
           {"float* x", "ret", "take a BE::Out<float>"},
           {"const int* x", "attr.x:int32[]", "take a BE::Span<const T>"},
           {"std::vector<int> x", "attr.x:int32[]", "take a BE::Span<const T>"},
           {"const std::vector<BE::Tensor>& x", "args...", "take a BE::Span<const BE::Tensor>"},
           {"BE::Tensor* x", "rets...", "take a BE::Span<BE::Tensor>"},
           {"std::optional<BE::Tensor> x", "arg?", "take a const BE::Tensor*"},
           {"void* x", "scratch:4", "take a BE::Scratch, whose data() is the pointer"},
           {"int& x", "attr.x:int32", "take it by value"},
           {"float x[4]", "attr.x:float32", "take it by value"},
           {"const std::string& x", "attr.x:string", "take a std::string_view"},
           {"int x", "attr.x:float16", "but its arg_spec says 'attr.x:float16' there"},
           {"bool x", "attr.x:bfloat16", "but its arg_spec says 'attr.x:bfloat16' there"},
       }) {
    EXPECT_THAT(Listed("void f(BE::Tensor y, " + c.parameter + ");", {"f ret " + c.token}),
                IsInvalid(AllOf(HasSubstr("function 'f' (k.cu:1) takes '" + c.parameter + "' as parameter 2"),
                                HasSubstr(c.problem))));
  }
  for (const std::string passes :
       {"Handle& x|arg", "CUstream_st* x|stream", "std::optional<float> x|attr.x:float32", "Mode&& x|attr.x:int32",
        "float x|attr.x:float16", "uint16_t x|attr.x:bfloat16", "std::array<float, 2> x|attr.x:float32[]"}) {
    const size_t bar = passes.find('|');
    EXPECT_EQ(
        Described(Listed("void f(BE::Tensor y, " + passes.substr(0, bar) + ");", {"f ret " + passes.substr(bar + 1)})),
        "f: ret " + passes.substr(bar + 1));
  }
}

TEST(ListTest, WhatIsInDoubtPasses) {
  EXPECT_EQ(Described(Listed("void f(BE::Tensor a, BE::Tensor b);\nvoid f(BE::Tensor a);", {"f arg arg ret"})),
            "f: arg arg ret");
  EXPECT_EQ(Described(Listed("void f(BE::Tensor a\n#ifdef X\n, BE::Tensor b\n#endif\n);", {"f ret"})), "f: ret");
  EXPECT_EQ(Described(Listed("template <class T> void f(T a);", {"f arg ret"})), "f: arg ret");
  EXPECT_EQ(Described(Listed("using T = BE::Tensor; void f(const T& a, T& b);", {"f arg ret"})), "f: arg ret");
}

TEST(ListTest, TypesAttributesFromTheSignature) {
  const std::string source = "void f(BE::Tensor o, uint8_t a, const double b, int64_t stream, float* p);";
  EXPECT_EQ(Described(Listed(source, {"f ret attr.a attr.b attr.stream stream"})),
            "f: ret attr.a:uint8 attr.b:float64 attr.stream:int64 stream");
  EXPECT_THAT(Listed(source, {"f ret attr.c"}), IsInvalid(HasSubstr("function 'f' (k.cu:1) has no parameter 'c'")));
  EXPECT_THAT(Listed(source, {"f ret attr.p"}), IsInvalid(AllOf(HasSubstr("k.cu:1"), HasSubstr("'float* p'"))));
  EXPECT_THAT(Listed(source, {"f ret attr.o"}), IsInvalid(HasSubstr("it is not an attribute")));
  EXPECT_THAT(Listed("#include \"f.h\"", {"f ret attr.c"}), IsInvalid(HasSubstr("no signature 'void f(...)' in k.cu")));
}

TEST(ListTest, AFunctionThatIsNotThereIsToldWithThoseThatAre) {
  const std::string source =
      "void vector_add(const BE::Tensor a, BE::Tensor o);\nvoid scale(BE::Out<float> o);\nvoid helper(int n);\n"
      "__global__ void kernel(float* x);\n";
  const std::string there = " The functions with arrays here: kernel, scale, vector_add.";
  EXPECT_THAT(Listed(source, {"softmax arg ret"}),
              IsInvalid(HasSubstr("function 'softmax': nothing in k.cu defines it." + there)));
  EXPECT_THAT(Listed(source, {"vector_ad arg ret"}), IsInvalid(HasSubstr(there + " Did you mean vector_add?")));
  EXPECT_THAT(Listed(source, {"vector_ad"}), IsInvalid(HasSubstr("attr.<name>:<type>." + there + " Did you mean")));
  EXPECT_THAT(Listed("#include \"add.h\"\n" + source, {"softmax arg ret"}), IsOk()) << "a header may define it";
  EXPECT_THAT(Listed("DEFINE(softmax)\n" + source, {"softmax arg ret"}), IsOk()) << "a macro may define it";
}

// ---- Inference ----

TEST(InferenceTest, ReadsTensors) {
  EXPECT_EQ(Inferred("const BE::Tensor a, const BE::Tensor& b, BE::Tensor c, BE::Tensor& d"), "f: arg arg ret ret");
  EXPECT_EQ(Inferred("BE::Tensor const a, ::BE::Tensor b, const Tensor &c, Tensor d"), "f: arg ret arg ret");
  EXPECT_EQ(Inferred("[[maybe_unused]] const BE::Tensor, BE::Tensor"), "f: arg ret");
}

TEST(InferenceTest, ReadsTypedArrays) {
  EXPECT_EQ(
      Inferred("BE::In<float> x, const ::BE::In<double, 2>& w, const BE::Out<unsigned char, 0> y, cudaStream_t s"),
      "f: arg:float32 arg:float64[2] ret:uint8[0] stream");
  const std::pair<const char*, const char*> types[] = {{"bool", "bool"},
                                                       {"std::int64_t", "int64"},
                                                       {"unsigned long long", "uint64"},
                                                       {"__half", "float16"},
                                                       {"BE::float16_t", "float16"},
                                                       {"__nv_bfloat16", "bfloat16"},
                                                       {"BE::bfloat16_t", "bfloat16"},
                                                       {"std::complex<float>", "complex64"},
                                                       {"complex<double>", "complex128"},
                                                       {"clock_t", "int64"},
                                                       {"cuDoubleComplex", "complex128"},
                                                       {"BE::complex128_t", "complex128"},
                                                       {"BE::float8_e4m3fn_t", "float8_e4m3fn"},
                                                       {"__nv_fp8_e5m2", "float8_e5m2"}};
  for (const auto& [type, name] : types) EXPECT_EQ(Inferred(StrCat("BE::Out<", type, "> y")), StrCat("f: ret:", name));
  EXPECT_EQ(Described(Listed("template <typename T> void f(BE::In<T> x, BE::Out<T> y) {}", {"f<double>"})),
            "f_double: arg:float64 ret:float64");
  EXPECT_EQ(Described(Listed("using Matrix = BE::In<float, 2>; void f(Matrix x, BE::Out<float> y) {}", {"f"})),
            "f: arg:float32[2] ret:float32");
}

TEST(TypedTest, AFlagDecidesWhatAnElementIs) {
  const std::vector<SourceText> sources = {
      {"k.cu",
       "#ifdef USE_DOUBLE\nusing real = double;\n#else\nusing real = float;\n#endif\n"
       "void f(BE::In<real> x, BE::Out<real> y) {}"}};
  v1::Functions functions;
  functions.add_function()->set_name("f");
  EXPECT_EQ(Described(ResolveFunctions(sources, functions, {"#define USE_DOUBLE 1"})), "f: arg:float64 ret:float64");
  EXPECT_EQ(Described(ResolveFunctions(sources, functions, {"#undef USE_DOUBLE"})), "f: arg:float32 ret:float32");
  EXPECT_EQ(Described(ResolveFunctions(sources, functions, {"#undef USE_DOUBLE", "#define USE_DOUBLE 1"})),
            "f: arg:float64 ret:float64");
  EXPECT_THAT(Described(ResolveFunctions(sources, functions, {})), HasSubstr("a -D or -U flag"));
}

TEST(TypedTest, ElementsMayHaveRareNames) {
  for (const auto& [type, element] : {std::pair{"std::byte", "uint8"},
                                      {"_Float16", "float16"},
                                      {"__bf16", "bfloat16"},
                                      {"char16_t", "uint16"},
                                      {"char32_t", "uint32"},
                                      {"wchar_t", "int32"},
                                      {"std::int_fast32_t", "int64"},
                                      {"uint_least16_t", "uint16"},
                                      {"uintmax_t", "uint64"}}) {
    EXPECT_THAT(Inferred(std::string("BE::In<") + type + "> x, BE::Out<float> y"), HasSubstr(element));
  }
}

// The tokens of f(BE::In<real> x, BE::Out<real, 2> y, BE::Span<const real> a), or the error.
absl::StatusOr<std::vector<FunctionSpec>> WithReal(const std::string& declarations) {
  return Listed(declarations + "\nvoid f(BE::In<real> x, BE::Out<real, 2> y, BE::Span<const real> a) {}", {"f"});
}

TEST(InferenceTest, ReadsTypedArraysOfTheSourcesOwnAlias) {
  for (const char* alias : {"using real = double;", "typedef double real;", "using wide = double; using real = wide;",
                            "namespace { using real = double; }", "using real = double; using real = double;"}) {
    EXPECT_EQ(Described(WithReal(alias)), "f: arg:float64 ret:float64[2] attr.a:float64[]") << alias;
  }
  EXPECT_EQ(Described(Listed("using c = std::complex<float>;\nvoid f(BE::In<c> x, BE::Out<c, 0> y) {}", {"f"})),
            "f: arg:complex64 ret:complex64[0]");
  EXPECT_EQ(Described(Listed("using real = half;\ntemplate <typename T> void f(BE::Out<T> y) {}", {"f<real>"})),
            "f_real: ret:float16");
  for (const char* alias :
       {"", "struct real {};", "using real = float*;", "using real = std::conditional_t<true, float, double>;",
        "void g() { using real = float; }", "struct S { using real = float; };",
        "#ifdef WIDE\nusing real = double;\n#else\nusing real = float;\n#endif"}) {
    EXPECT_THAT(WithReal(alias), IsInvalid(HasSubstr("Write out the tokens, with arg:<element type>"))) << alias;
  }
  EXPECT_THAT(WithReal("using real = const float;"), IsInvalid(HasSubstr("leave out the const")));
}

TEST(InferenceTest, ExplainsTypedArraysThatItCannotRead) {
  for (const auto& [parameters, problem] :
       {std::pair{"BE::In<scalar> x", "Write out the tokens, with arg:<element type>"},
        std::pair{"BE::Out<Vec3> x", "ret:float16 if it is a half. For a struct of several numbers, take a BE::Tensor"},
        std::pair{"BE::In<vec<scalar, 3>> x", "whose data_ptr<vec<scalar, 3>>() is the pointer"},
        std::pair{"BE::In<long double> x", "JAX has no arrays of long double"},
        std::pair{"BE::In<__int128> x", "JAX has no arrays of __int128"},
        std::pair{"BE::In<void> x", "take a BE::Tensor, which takes every element type"},
        std::pair{"BE::In<float*> x", "Write out the tokens"},
        std::pair{"BE::In<mine::complex<float>> x", "with arg:complex64"},
        std::pair{"BE::In<const float> x", "leave out the const"},
        std::pair{"BE::In<float, kRank> x", "must be written as 0 to 8"},
        std::pair{"BE::In<float, 9> x", "must be written as 0 to 8"},
        std::pair{"BE::Out<float>& y", "take it by value"},
        std::pair{"const BE::In<float>* x", "take the BE::In by value"},
        std::pair{"BE::Span<const BE::In<float>> x", "take a BE::Span<const BE::Tensor>"}}) {
    EXPECT_THAT(Inferred(StrCat(parameters, ", BE::Tensor o")), HasSubstr(problem)) << parameters;
  }
}

TEST(InferenceTest, SaysWhatToTakeInThePlaceOfAPointer) {
  const std::pair<const char*, const char*> cases[] = {
      {"const float* x", "'BE::In<float> x'. Its x.data() is the pointer"},
      {"unsigned int *__restrict__ y", "take a BE::Out<unsigned int>: 'BE::Out<unsigned int> y'"},
      {"const double w[]", "'BE::In<double> w'"},
      {"const __half* h", "'BE::In<__half> h'"},
      {"const void* p", "take a BE::Tensor: 'const BE::Tensor& p'. Its p.data_ptr<const void>() is the pointer"},
      {"float4* v", "take a BE::Tensor: 'BE::Tensor& v'. Its v.data_ptr<float4>() is the pointer"},
      {"const char* s", "take a std::string_view"}};
  for (const auto& [parameter, advice] : cases) {
    EXPECT_THAT(Inferred(StrCat(parameter, ", BE::Tensor o")), HasSubstr(advice)) << parameter;
  }
  EXPECT_THAT(Inferred("float** x, BE::Tensor o"), testing::EndsWith("a pointer cannot come from JAX"));
}

TEST(InferenceTest, ADeviceFunctionIsNotExported) {
  const std::string f = "__device__ float g() { f(); }\n__device__ inline void f(const float* x, float* y) {}";
  for (const char* list : {"f", "f arg:float32 ret:float32"}) {
    EXPECT_THAT(Listed(f, {list}), IsInvalid(HasSubstr("is a __device__ function: export a __global__"))) << list;
  }
  EXPECT_EQ(Described(Listed(f + "\n__global__ void f(float* y) {}", {"f"})), "f: ret:float32");
}

TEST(ListTest, TokensOfArraysMustAgreeWithTheSignature) {
  const std::string typed = "void f(BE::In<float, 2> x, BE::Out<float> y) {}";
  for (const char* list : {"f arg ret", "f arg:float32 ret", "f arg:float32[2] ret:float32"}) {
    EXPECT_EQ(Described(Listed(typed, {list})), "f: arg:float32[2] ret:float32") << list;
  }
  EXPECT_EQ(Described(Listed(typed, {"f arg ret:float32[3]"})), "f: arg:float32[2] ret:float32[3]");
  EXPECT_EQ(Described(Listed("void f(const BE::Tensor x, BE::Tensor y) {}", {"f arg:int8 ret"})), "f: arg:int8 ret");
  for (const char* list : {"f arg:float64 ret", "f arg:float32[1] ret", "f ret arg", "f arg ret:int32"}) {
    EXPECT_THAT(Listed(typed, {list}), IsInvalid(HasSubstr("but its arg_spec says"))) << list;
  }
  EXPECT_EQ(Listed(typed, {"f arg ret"})->at(0).parameters[0].declared_name, "x");
  EXPECT_EQ(Listed(typed, {"f"})->at(0).parameters[1].declared_name, "y");
}

TEST(InferenceTest, ReadsStreams) {
  EXPECT_EQ(Inferred("BE::Tensor o, int64_t stream"), "f: ret stream");
  EXPECT_EQ(Inferred("BE::Tensor o, const std::int64_t stream"), "f: ret stream");
  EXPECT_EQ(Inferred("BE::Tensor o, cudaStream_t s"), "f: ret stream");
  EXPECT_EQ(Inferred("BE::Tensor o, cudaStream_t"), "f: ret stream");
  EXPECT_EQ(Inferred("BE::Tensor o, int64_t count"), "f: ret attr.count:int64");
  EXPECT_THAT(Inferred("BE::Tensor o, cudaStream_t s, int64_t stream"), HasSubstr("duplicate 'stream'"));
}

TEST(InferenceTest, ReadsScalars) {
  EXPECT_EQ(Inferred("BE::Tensor o, bool a, char b, signed char c, unsigned char d, short e, unsigned short int f"),
            "f: ret attr.a:bool attr.b:int8 attr.c:int8 attr.d:uint8 attr.e:int16 attr.f:uint16");
  EXPECT_EQ(Inferred("BE::Tensor o, int a, unsigned b, long c, long unsigned int d, long long e, unsigned long long g"),
            "f: ret attr.a:int32 attr.b:uint32 attr.c:int64 attr.d:uint64 attr.e:int64 attr.g:uint64");
  EXPECT_EQ(Inferred("BE::Tensor o, int8_t a, std::uint16_t b, size_t c, const float& d, double const e"),
            "f: ret attr.a:int8 attr.b:uint16 attr.c:uint64 attr.d:float32 attr.e:float64");
  EXPECT_EQ(Inferred("BE::Tensor o, float a = 1.0f, int b = g(1, 2)"), "f: ret attr.a:float32? attr.b:int32?");
}

TEST(InferenceTest, ReadsStringsAndArrays) {
  EXPECT_EQ(Inferred("BE::Tensor o, std::string_view a, const std::string_view& b, std :: string_view const c"),
            "f: ret attr.a:string attr.b:string attr.c:string");
  EXPECT_EQ(
      Inferred("BE::Tensor o, BE::Span<const float> a, const BE::Span<const std::int32_t>& b, Span<double const> c"),
      "f: ret attr.a:float32[] attr.b:int32[] attr.c:float64[]");
  EXPECT_EQ(Inferred("BE::Tensor o, ::BE::Span<const unsigned char> a = {}"), "f: ret attr.a:uint8[]?");
}

TEST(InferenceTest, ReadsOptionalAndVariadicParameters) {
  EXPECT_EQ(Inferred("const BE::Tensor a, BE::Tensor o, const BE::Tensor* b, BE::Tensor const *__restrict__ c"),
            "f: arg ret arg? arg?");
  EXPECT_EQ(Inferred("const BE::Tensor a, BE::Span<const BE::Tensor> b, const BE::Span<BE::Tensor>& c"),
            "f: arg args... rets...");
  EXPECT_THAT(Inferred("BE::Span<const Tensor> a, BE::Span<const Tensor> b, Tensor c"),
              AllOf(HasSubstr("k.cu:1"), HasSubstr("duplicate 'args...'")));
}

TEST(InferenceTest, AttributesWithDefaultsMayBeLeftOut) {
  const auto inferred = [](const std::string& parameters) {
    return Described(Annotated("// @BE f\nvoid f(const BE::Tensor x, BE::Tensor y" + parameters + ") {}"));
  };
  EXPECT_EQ(inferred(", float a = 2.0f"), "f: arg ret attr.a:float32?");
  EXPECT_EQ(inferred(", int n, float a = g(1, 2), size_t k = 5"),
            "f: arg ret attr.n:int32 attr.a:float32? attr.k:uint64?");
  EXPECT_EQ(inferred(", std::string_view s = \"x\""), "f: arg ret attr.s:string?");
  // C++ cannot leave out an argument that others follow.
  EXPECT_EQ(inferred(", float a = 2.0f, int64_t stream = 0"), "f: arg ret attr.a:float32 stream");
  EXPECT_EQ(inferred(", float a = 2.0f, int n"), "f: arg ret attr.a:float32 attr.n:int32");
  // Unreadable parameters keep their defaults.
  EXPECT_EQ(inferred(", const void* p = nullptr"), "f: arg ret");
  EXPECT_EQ(inferred(", int n = 1, Mode m = Mode::a, float = 2"), "f: arg ret attr.n:int32?");
  EXPECT_THAT(inferred(", const void* p = nullptr, int n = 1"),
              AllOf(HasSubstr("parameter 3 'p'"), HasSubstr("move it to the end, where it keeps its default")));
  EXPECT_THAT(inferred(", BE::Scratch s = {}"), HasSubstr("write out the tokens"));
  std::string many;
  for (int i = 0; i < 20; ++i) StrAppend(&many, ", int a", i, " = 0");
  EXPECT_THAT(inferred(many), AllOf(HasSubstr("attr.a3:int32 attr.a4:int32? "), HasSubstr("attr.a19:int32?")));
}

TEST(InferenceTest, AMistypedArgumentOfATemplateIsTold) {
  const auto instance = [](const std::string& type) {
    return Described(
        Annotated(StrCat("template <typename T>\nvoid f(BE::In<T> x, BE::Out<T> y) {}\n// @BE f<", type, ">\n")));
  };
  EXPECT_THAT(instance("flaot"), HasSubstr("k.cu:2: parameter 1 'x' of function 'f<flaot>' is 'BE::In<flaot> x', which "
                                           "inference cannot read: kernix cannot read its element type. Did you mean "
                                           "float? Write out the tokens, with arg:"));
  const std::pair<const char*, const char*> meant[] = {{"dobule", "double"},
                                                       {"Float", "float"},
                                                       {"int23_t", "int32_t"},
                                                       {"unit8_t", "uint8_t"},
                                                       {"float32", "float"},
                                                       {"float64", "double"},
                                                       {"int8", "int8_t"},
                                                       {"uint64", "uint64_t"},
                                                       {"hafl", "half"},
                                                       {"float16", "BE::float16_t"},
                                                       {"bfloat16", "BE::bfloat16_t"}};
  for (const auto& [type, name] : meant) {
    EXPECT_THAT(instance(type), HasSubstr(StrCat("Did you mean ", name, "? Write"))) << type;
  }
  for (const char* type : {"Quaternion", "my::real", "3", ""}) {
    EXPECT_THAT(instance(type), HasSubstr("element type. Write out the tokens")) << type;
  }
}

TEST(InferenceTest, ATemplateNeedsItsArguments) {
  EXPECT_THAT(Annotated("template <typename T>\n// @BE f\nvoid f(BE::Tensor y, T a) {}"),
              IsInvalid(AllOf(HasSubstr("k.cu:2"), HasSubstr("is a template"), HasSubstr("'f<float>'"))));
}

TEST(InferenceTest, ADefaultHoldsInBothBranches) {
  EXPECT_EQ(Described(Annotated("// @BE f\n#ifdef A\nvoid f(BE::Tensor y, int n) {}\n#else\n"
                                "void f(BE::Tensor y, int n = 1) {}\n#endif")),
            "f: ret attr.n:int32");
  EXPECT_EQ(Described(Annotated("// @BE f\nvoid f(BE::Tensor y, int n = 1);\nvoid f(BE::Tensor y, int n) {}")),
            "f: ret attr.n:int32?");
}

// If some branch lacks the default argument, a call that leaves it out would not compile.
TEST(InferenceTest, ADefaultOfABranchIsNoDefaultElsewhere) {
  const std::string declared = "void f(BE::Tensor y, int n = 1);\n";
  const std::string defined = "void f(BE::Tensor y, int n) {}\n";
  const std::string both = "void f(BE::Tensor y, int n = 1) {}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"#ifdef A\n" + declared + "#endif\n" + defined, ""},
      {"#ifdef A\n" + declared + "#else\n" + defined + "#endif\n" + defined, ""},
      {"#ifdef A\n" + both + "#else\n" + defined + "#endif\n", ""},
      {"#ifdef A\n" + defined + "#else\n" + both + "#endif\n", ""},
      {"#ifdef A\n" + both + "#else\n" + both + "#endif\n", "?"},
      {declared + "#ifdef A\n" + defined + "#else\n" + defined + "#endif\n", "?"},
      {"#ifdef A\n" + defined + "#endif\n" + declared, "?"},
      {"#pragma once\n#ifndef G\n#define G\n" + declared + defined + "#endif\n", "?"},
  };
  for (const auto& [source, mark] : cases) {
    EXPECT_EQ(Described(Listed(source, {"f"})), "f: ret attr.n:int32" + mark) << source;
  }
  const std::string list = "(T y, int n = 1);\n#endif\ntemplate <class T> void f(T y, int n) {}";
  EXPECT_EQ(Described(Listed("#ifdef A\ntemplate <class T> void f" + list, {"f<BE::Tensor>"})),
            "f_BE_Tensor: ret attr.n:int32");
}

TEST(ListTest, AStringIsAStringView) {
  for (const char* type : {"std::string", "const std::string&", "const char*"}) {
    EXPECT_THAT(Listed(StrCat("void f(BE::Tensor y, ", type, " k) {}"), {"f ret attr.k:string"}),
                IsInvalid(AllOf(HasSubstr(type), HasSubstr("take a std::string_view"))))
        << type;
  }
}

TEST(ListTest, TokensSayWhatMayBeLeftOut) {
  const std::string source = "void f(const BE::Tensor x, BE::Tensor y, float a, int n = 1, BE::Scratch s = {}) {}";
  EXPECT_EQ(Described(Listed(source, {"f arg ret attr.a attr.n?"})), "f: arg ret attr.a:float32 attr.n:int32?");
  EXPECT_EQ(Described(Listed(source, {"f arg ret attr.a attr.n:int64"})), "f: arg ret attr.a:float32 attr.n:int64");
  EXPECT_THAT(Listed(source, {"f arg ret attr.a? attr.n?"}),
              IsInvalid(HasSubstr("has no default argument for 'float a'")));
  EXPECT_THAT(Listed(source, {"f arg ret attr.a attr.n:int32? scratch:8"}), IsInvalid(HasSubstr("follows 'attr.n?'")));
  EXPECT_THAT(Listed("#include \"f.h\"", {"f ret scratch:n attr.n:int32?"}),
              IsInvalid(HasSubstr("a call may leave out")));
}

TEST(InferenceTest, ReadsTheDeviceOrdinal) {
  EXPECT_EQ(Inferred("BE::Tensor o, int device_ordinal"), "f: ret device_ordinal");
  EXPECT_EQ(Inferred("BE::Tensor o, const int32_t device_ordinal"), "f: ret device_ordinal");
  EXPECT_EQ(Inferred("BE::Tensor o, int64_t device_ordinal"), "f: ret device_ordinal");
  EXPECT_EQ(Inferred("BE::Tensor o, float device_ordinal"), "f: ret attr.device_ordinal:float32");
  const std::string source = "void f(BE::Tensor o, int device_ordinal);";
  EXPECT_EQ(Described(Listed(source, {"f ret attr.device_ordinal"})), "f: ret attr.device_ordinal:int32");
}

TEST(ListTest, ComparesExtensionsWithTheSignature) {
  const std::string source = "void f(BE::Span<const BE::Tensor> a, BE::Tensor b, BE::Scratch c, int d);";
  EXPECT_EQ(Described(Listed(source, {"f arg.token args... ret scratch:16 device_ordinal"})),
            "f: arg.token args... ret scratch:16 device_ordinal");
  EXPECT_THAT(Listed(source, {"f arg ret scratch:16 device_ordinal"}),
              IsInvalid(HasSubstr("takes 'BE::Span<const BE::Tensor> a' as parameter 1, but its arg_spec says 'arg'")));
  EXPECT_THAT(Listed(source, {"f args... ret.token scratch:16 device_ordinal"}),
              IsInvalid(HasSubstr("has 4 parameters, but its arg_spec has 3")));
  EXPECT_THAT(Listed(source, {"f args... ret attr.c:int32 device_ordinal"}), IsInvalid(HasSubstr("'BE::Scratch c'")));
  EXPECT_THAT(Listed("void f(BE::Tensor o, const BE::Tensor* p);", {"f ret arg"}),
              IsInvalid(HasSubstr("'const BE::Tensor* p'")));
}

TEST(AnnotationTest, ErrorsOfTokensNameTheirLine) {
  for (const char* tokens : {"ret scratch:4;", "ret arg? args...", "ret attr.x:bool[]", "ret scratch:arg0.numel()"}) {
    EXPECT_THAT(Annotated(std::string("\n// @BE f ") + tokens + "\nvoid f(BE::Tensor o);"),
                IsInvalid(AllOf(HasSubstr("k.cu:2"), HasSubstr("function 'f'"))))
        << tokens;
  }
}

TEST(ListTest, ComparesStringsAndArraysWithTheSignature) {
  const std::string source = "void f(BE::Tensor o, BE::Span<const int> a, std::string_view b, float c);";
  EXPECT_EQ(Described(Listed(source, {"f ret attr.a attr.b attr.c"})),
            "f: ret attr.a:int32[] attr.b:string attr.c:float32");
  EXPECT_THAT(
      Listed(source, {"f ret attr.a:int32 attr.b attr.c"}),
      IsInvalid(HasSubstr("takes 'BE::Span<const int> a' as parameter 2, but its arg_spec says 'attr.a:int32'")));
  EXPECT_THAT(Listed(source, {"f ret attr.a attr.b:int32[] attr.c"}), IsInvalid(HasSubstr("'std::string_view b'")));
  EXPECT_THAT(Listed(source, {"f ret attr.a attr.b attr.c:string"}), IsInvalid(HasSubstr("'float c'")));
  EXPECT_THAT(Listed(source, {"f ret arg attr.b attr.c"}), IsInvalid(HasSubstr("'BE::Span<const int> a'")));
}

// Every other parameter is an error that names it; none is dropped.
TEST(InferenceTest, NamesWhatItCannotRead) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"float* p", "'p'"},
      {"const float *p", "'p'"},
      {"float p[]", "'p'"},
      {"float& p", "by value"},
      {"BE::Tensor* p", "by value or by reference"},
      {"const BE::Tensor** p", "'p'"},
      {"const BE::Tensor p[]", "'p'"},
      {"BE::Span<const BE::Tensor>& p", "by value"},
      {"BE::Span<BE::Tensor*> p", "'p'"},
      {"BE::Scratch p", "scratch:4*arg0.numel()"},
      {"const BE::Scratch& p", "scratch:<bytes>"},
      {"BE::Tensor&& p", "'p'"},
      {"std::complex<float> p", "real and imaginary"},
      {"__half p", "attr.<name>:float16"},
      {"BE::bfloat16_t p", "attr.<name>:float16"},
      {"const std::string& p", "take a std::string_view"},
      {"const char* p", "take a std::string_view"},
      {"std::string_view& p", "by value"},
      {"BE::Span<float> p", "BE::Span<const T>"},
      {"BE::Span<const bool> p", "integers of 8 to 64 bits"},
      {"BE::Span<const float*> p", "integers of 8 to 64 bits"},
      {"BE::Span<const float>* p", "'p'"},
      {"std::string_view", "an attribute needs a name"},
      {"std::vector<int, A<int>> p", "'p'"},
      {"MyType p", "'p'"},
      {"void (*p)(int)", "parameter 2"},
      {"...", "'...'"},
      {"long double p", "'p'"},
      {"int", "an attribute needs a name"},
      {"auto p", "'p'"},
  };
  for (const auto& [parameter, expected] : cases) {
    EXPECT_THAT(Inferred("BE::Tensor o, " + parameter),
                AllOf(HasSubstr("k.cu:1: parameter 2"), HasSubstr("of function 'f'"), HasSubstr(expected)))
        << parameter;
  }
}

TEST(InferenceTest, PointsAtTheLineOfTheParameter) {
  EXPECT_THAT(Inferred("\n const BE::Tensor a,\n BE::Tensor o,\n int* bad"), HasSubstr("k.cu:4: parameter 3 'bad'"));
}

TEST(InferenceTest, NeedsAnOutput) {
  EXPECT_THAT(Inferred("const BE::Tensor a"), AllOf(HasSubstr("k.cu:1"), HasSubstr("no 'ret'")));
  EXPECT_THAT(Inferred(""), HasSubstr("no 'ret'"));
  EXPECT_THAT(Inferred("void"), HasSubstr("no 'ret'"));
}

TEST(InferenceTest, FindsFunctionsAmongOtherText) {
  const std::vector<std::string> sources = {
      "static inline void f(BE::Tensor o) {}",
      "namespace { void f(BE::Tensor o) {} }",
      "extern \"C\" { void f(BE::Tensor o) {} }",
      "extern \"C\" void f(BE::Tensor o);",
      "namespace a { void f(BE::Tensor x, BE::Tensor y); }\nvoid f(BE::Tensor o) {}",
      "__attribute__((noinline)) void f(BE::Tensor o) noexcept {}",
      "auto f(BE::Tensor o) -> void {}",
      "void g() { f(1, 2); }\nvoid f(BE::Tensor o) {}\nstruct S { void f(int* p) {} };",
      "void f(BE::Tensor o);\nvoid f(BE::Tensor o) {}",
      "void f(const float* p, int n);\nvoid f(BE::Tensor o) {}",
      "__global__ void f(float* p) {}\nvoid f(BE::Tensor o) {}",
      "template <class T> void f(T* p) {}\nvoid f(BE::Tensor o) {}",
      "#ifdef A\nvoid g(int x) {\n#else\nvoid g(long x) {\n#endif\n}\nvoid f(BE::Tensor o) {}",
      "#if 1\nvoid f(BE::Tensor o) {}\n#else\nvoid f(BE::Tensor o, int x) {}\n#endif",
      "#if true\nnamespace {\n#else\nstruct S {\n#endif\nvoid f(BE::Tensor o) {}\n}",
      "[[gnu::noinline]] static void f [[gnu::cold]] (BE::Tensor o [[maybe_unused]]) {}",
      "auto f(BE::Tensor o) noexcept -> void {}",
      "void f(BE::Tensor o) try {} catch (...) {}",
      "// void f(int* p)\n/* void f(int* p) */ const char* s = \"void f(int* p)\";\nvoid f(BE::Tensor o) {}",
      "#define EXPORT static\nEXPORT void f(BE::Tensor o) {}",
      "int x = 3; UNKNOWN(x)\nvoid f(BE::Tensor o) UNKNOWN_TAIL {}",
  };
  for (const std::string& source : sources) EXPECT_EQ(Described(Listed(source, {"f"})), "f: ret") << source;
}

// A comma or an angle bracket in a default argument neither ends nor begins a parameter.
TEST(InferenceTest, ReadsPastDefaultArguments) {
  const std::vector<std::string> values = {"1 < 2",
                                           "n < 2",
                                           "n >= 2",
                                           "n << 2",
                                           "1 >> n",
                                           "V<1, 2>::v",
                                           "V<(2 > 1), n>::v",
                                           "g(1, 2)",
                                           "int{}",
                                           "','",
                                           "[](int a, int b) { return a < b; }(1, 2)",
                                           "sizeof(\"),(\")",
                                           "sizeof(R\"x(),\")x\")",
                                           "1'000",
                                           "{}",
                                           "m[n, 2]"};
  for (const std::string& value : values) {
    EXPECT_EQ(Inferred("BE::Tensor o, int a = " + value + ", int b = 3"), "f: ret attr.a:int32? attr.b:int32?")
        << value;
  }
}

TEST(InferenceTest, TakesNamesFromWhicheverDeclarationHasThem) {
  const std::string named = "void f(const BE::Tensor a, BE::Tensor o, float x = 1, int64_t stream = 0)";
  const std::string unnamed = "void f(const BE::Tensor, BE::Tensor, float, int64_t)";
  for (const std::string& source : {named + ";\n" + unnamed + "{}", unnamed + ";\n" + named + "{}"}) {
    EXPECT_EQ(Described(Listed(source, {"f"})), "f: arg ret attr.x:float32 stream") << source;
    EXPECT_EQ(Described(Listed(source, {"f arg ret attr.x"})), "f: arg ret attr.x:float32") << source;
  }
}

TEST(InferenceTest, ReadsVariadicMacros) {
  for (const char* macro : {"#define FN(name, ...) void name(BE::Tensor o, __VA_ARGS__)",
                            "#define FN(name, rest...) void name(BE::Tensor o, rest)",
                            "#define FN(name, ...) void name(BE::Tensor o, ##__VA_ARGS__)",
                            "#define FN(name, ...) void name(BE::Tensor o __VA_OPT__(,) __VA_ARGS__)"}) {
    EXPECT_EQ(Described(Listed(macro + std::string("\nFN(f, float x, int y) {}"), {"f"})),
              "f: ret attr.x:float32 attr.y:int32")
        << macro;
  }
  for (const char* macro : {"#define FN(name, ...) void name(BE::Tensor o, ##__VA_ARGS__)",
                            "#define FN(name, rest...) void name(BE::Tensor o, ##rest)",
                            "#define FN(name, ...) void name(BE::Tensor o __VA_OPT__(, int x))"}) {
    EXPECT_EQ(Described(Listed(macro + std::string("\nFN(f) {}"), {"f"})), "f: ret") << macro;
  }
}

TEST(InferenceTest, RefusesWhatIsNoHandlerFunction) {
  EXPECT_THAT(Listed("int f(BE::Tensor o);", {"f"}), IsInvalid(HasSubstr("k.cu:1: function 'f' must return void")));
  EXPECT_THAT(Listed("void* f(BE::Tensor o);", {"f"}), IsInvalid(HasSubstr("must return void")));
  EXPECT_THAT(Listed("void g(BE::Tensor o);", {"f"}), IsInvalid(HasSubstr("no signature 'void f(...)'")));
  EXPECT_THAT(Listed("template <class T> void f(T o);", {"f"}), IsInvalid(HasSubstr("is a template")));
  EXPECT_THAT(Listed("void f(BE::Tensor a);\n\nvoid f(BE::Tensor a, BE::Tensor b);", {"f"}),
              IsInvalid(HasSubstr("function 'f' is overloaded (k.cu:1, k.cu:3;")));
  EXPECT_THAT(Listed("#ifdef X\nvoid f(BE::Tensor a, int n)\n#else\nvoid f(BE::Tensor a)\n#endif\n{}", {"f"}),
              IsInvalid(HasSubstr("function 'f' is overloaded (k.cu:2, k.cu:4; both branches of an #if count)")));
  EXPECT_THAT(Listed("void f(BE::Tensor a\n#ifdef X\n, int n\n#endif\n);", {"f"}),
              IsInvalid(HasSubstr("k.cu:1: function 'f' has an #if among its parameters")));
}

// The C++ names to call, where they differ from the function's name.
std::string Callees(const absl::StatusOr<std::vector<FunctionSpec>>& specs) {
  if (!specs.ok()) return std::string(ToStd(specs.status().message()));
  std::string text;
  for (const FunctionSpec& spec : *specs) StrAppend(&text, text.empty() ? "" : "; ", spec.name, "=", spec.callee);
  return text;
}

TEST(NamespaceTest, IsFoundOrNamed) {
  const std::string nested = "namespace a::b { inline namespace c { namespace { void f(BE::Tensor o) {} } } }";
  EXPECT_EQ(Callees(Listed(nested, {"f"})), "f=a::b::f");
  EXPECT_EQ(Callees(Listed(nested, {"f ret"})), "f=a::b::f");
  EXPECT_EQ(Callees(Listed(nested, {"a::b::f"})), "a_b_f=a::b::f");
  EXPECT_EQ(Callees(Annotated("namespace a {\n// @BE f\nvoid f(BE::Tensor o) {}\n}")), "f=a::f");
  EXPECT_EQ(Callees(Listed("namespace [[deprecated]] a { void f(BE::Tensor o); }", {"f"})), "f=a::f");
  EXPECT_EQ(Callees(Listed("namespace a { void f(BE::Tensor o); } void f(BE::Tensor o);", {"f", "a::f"})),
            "f=; a_f=a::f");
  EXPECT_EQ(Callees(Listed("#include \"x.h\"", {"a::f ret"})), "a_f=a::f");
}

TEST(NamespaceTest, IsReadPastWhatIsNoName) {
  const std::string function = " { void f(BE::Tensor o); }";
  EXPECT_EQ(Callees(Listed("namespace a __attribute__((visibility(\"default\")))" + function, {"f"})), "f=a::f");
  EXPECT_EQ(Callees(Listed("namespace UNKNOWN(default) a" + function, {"f"})), "f=a::f");
  EXPECT_EQ(Callees(Listed("namespace a::inline v2::b" + function, {"a::b::f"})), "a_b_f=a::b::f");
}

TEST(NamespaceTest, OfSeveralOneMustBeNamed) {
  const std::string two = "namespace a { void f(BE::Tensor o); }\nnamespace b { void f(BE::Tensor o); }";
  const std::string problem =
      "function 'f' is in several namespaces (k.cu:1, k.cu:2): name the namespace, as in 'a::f'";
  EXPECT_THAT(Listed(two, {"f"}), IsInvalid(HasSubstr(problem)));
  EXPECT_THAT(Listed(two, {"f ret"}), IsInvalid(HasSubstr(problem)));
  EXPECT_EQ(Callees(Listed(two, {"a::f", "b::f"})), "a_f=a::f; b_f=b::f");
  EXPECT_THAT(Listed(two, {"c::f"}), IsInvalid(HasSubstr("no signature 'void c::f(...)'")));
}

TEST(TemplateTest, AnInstanceHasASignature) {
  const std::string scale =
      "template <typename T, int kWidth = 4, class = void>\n"
      "void scale(const BE::Tensor& x, BE::Tensor& y, T factor, const T& shift, int64_t stream) {}\n";
  EXPECT_EQ(Described(Listed(scale, {"scale<float>", "scale<unsigned int, 8>"})),
            "scale_float: arg ret attr.factor:float32 attr.shift:float32 stream; "
            "scale_unsigned_int_8: arg ret attr.factor:uint32 attr.shift:uint32 stream");
  EXPECT_EQ(Callees(Listed(scale, {"scale<float>"})), "scale_float=scale<float>");
  EXPECT_EQ(Described(Annotated("// @BE scale<double, 2> arg ret attr.factor attr.shift stream\n" + scale)),
            "scale_double_2: arg ret attr.factor:float64 attr.shift:float64 stream");
  EXPECT_EQ(Callees(Listed("namespace a {" + scale + "}", {"scale<float>"})), "scale_float=a::scale<float>");
  EXPECT_EQ(
      Described(Listed("template <class T, class U = T> void f(BE::Tensor o, U x, a::T* T_);", {"f<int> ret attr.x"})),
      "function 'f<int>' (k.cu:1) has 3 parameters, but its arg_spec has 2 (ret attr.x:int32)");
  EXPECT_EQ(Described(Listed("template <class, class T> void f(BE::Tensor o, T x);", {"f<int, float>"})),
            "f_int_float: ret attr.x:float32");
  EXPECT_EQ(
      Described(Listed("template <class T> void f(BE::Tensor, T);\ntemplate <class T> void f(BE::Tensor o, T x) {}",
                       {"f<float>"})),
      "f_float: ret attr.x:float32");
}

TEST(TemplateTest, AViewIsNotDeduced) {
  const std::string source = "template <class T> void f(BE::In<T> x, BE::Out<float> y, T n);\n";
  for (const char* spec : {"f<> arg ret attr.n:int32", "f<> arg:float32 ret attr.n:int32"}) {
    EXPECT_THAT(Annotated(StrCat(source, "// @BE ", spec, "\n")),
                IsInvalid(HasSubstr("k.cu:2: function 'f<>' (k.cu:1) takes 'BE::In<T> x' as parameter 1, which C++")));
  }
  EXPECT_THAT(Listed("template <class T> void f(BE::Out<float> y, T n);", {"f<> ret attr.n:int32"}), IsOk());
}

// Defaults that use defaults grow exponentially; the text made from any source is limited.
TEST(TemplateTest, DefaultsDoNotGrowWithoutBound) {
  std::string parameters = "class T0";
  for (int i = 1; i < 24; ++i) StrAppend(&parameters, ", class T", i, " = V<T", i - 1, ", T", i - 1, ">");
  std::string list;
  for (int i = 0; i < 1000; ++i) StrAppend(&list, ", T23 x", i);
  EXPECT_THAT(Listed("template <" + parameters + "> void f(BE::Tensor o" + list + ");", {"f<int>"}), Not(IsOk()));
}

// The instances of a load are also limited together.
TEST(TemplateTest, InstancesOfALoadAreBounded) {
  std::string source, list;
  for (int i = 0; i < 200; ++i) StrAppend(&list, ", T x", i);
  for (int i = 0; i < 16; ++i)
    StrAppend(&source, "template <class T, int n> void f(BE::Tensor o", list, ", A", i, ");\n");
  std::vector<std::string> names;
  for (int i = 0; i < 4096; ++i) names.push_back(StrCat("f<int,", i, "> ret attr.x:int32"));
  EXPECT_THAT(Listed(source, names), IsInvalid(HasSubstr("more than 1000000 words and signs. Load fewer")));
  const std::string plain =
      "template <class T, int n> void f(const BE::Tensor a, BE::Tensor o, T x, cudaStream_t s) {}";
  for (std::string& name : names) name = name.substr(0, name.find(' '));
  EXPECT_THAT(Listed(plain, names), IsOk());
}

TEST(ListTest, WhatALoadIsReadForIsBounded) {
  std::string tokens, functions;
  for (int i = 0; i < 1'000'001; ++i) tokens += "1 ";
  EXPECT_THAT(Listed(tokens, {"f ret"}), IsInvalid(HasSubstr("k.cu: the sources of this load have more than 1000000")));
  std::string comments = "#include \"f.h\"\n";
  for (int i = 0; i < 1'000'001; ++i) comments += "// comment\n";
  EXPECT_THAT(Listed(comments, {"f ret"}), IsOk());
  EXPECT_THAT(Listed("#include \"f.h\"\nchar s[] = \"" + std::string(4'000'000, 'x') + "\";", {"f ret"}), IsOk());
  std::string many = "f ret";
  for (int i = 0; i < 1000; ++i) many += " arg";
  EXPECT_THAT(Listed("#include \"f.h\"", {many}), IsInvalid(HasSubstr("more than 1000 parameters")));
  std::vector<std::string> list;
  for (int i = 0; i < 201; ++i) list.push_back(StrCat("f", i, many.substr(1, many.size() - 5)));
  EXPECT_THAT(Listed("#include \"f.h\"", list),
              IsInvalid(HasSubstr("more than 1000 parameters in all, and 64 for each")));
}

TEST(TemplateTest, NamesWhatItCannotRead) {
  const std::string source = "template <class T> void f(BE::Tensor o, T x) {}\n";
  EXPECT_THAT(
      Listed(source, {"f<std::vector<int>>"}),
      IsInvalid(HasSubstr("k.cu:1: parameter 2 'x' of function 'f<std::vector<int>>' is 'std::vector<int> x'")));
  EXPECT_THAT(Listed(source, {"f"}), IsInvalid(HasSubstr("is a template")));
  EXPECT_THAT(Listed("void f(BE::Tensor o);", {"f<int>"}), IsInvalid(HasSubstr("no signature 'void f<int>(...)'")));
  EXPECT_THAT(Listed("template <class... Ts> void f(BE::Tensor o, Ts... xs);", {"f<int>"}),
              IsInvalid(HasSubstr("parameter 2")));
  EXPECT_THAT(Listed(source, {"f<int>", "f< int>"}),
              IsInvalid(AllOf(HasSubstr("'f<int>' and 'f< int>'"), HasSubstr("exported twice"))));
  EXPECT_THAT(Listed(source, {"f<int"}), IsInvalid(HasSubstr("the function name 'f<int'")));
}

TEST(InferenceTest, ReadsFunctionsThatMacrosMake) {
  const std::string pasting =
      "#define MAKE(SUFFIX, TYPE) \\\n  void scale##SUFFIX( \\\n    const BE::Tensor a, BE::Tensor b, TYPE factor, \\\n"
      "    int64_t stream) { run<TYPE>(a, b); }\n"
      "// @BE scale_f32\nMAKE(_f32, float)\n// @BE scale_f64\nMAKE(_f64, double)\n";
  EXPECT_EQ(Described(Annotated(pasting)),
            "scale_f32: arg ret attr.factor:float32 stream; scale_f64: arg ret attr.factor:float64 stream");
  EXPECT_EQ(Described(Listed(pasting, {"scale_f64"})), "scale_f64: arg ret attr.factor:float64 stream");
  EXPECT_EQ(Described(Annotated("#define ONE(S) void f##S(BE::Tensor o) {}\n#define ALL() ONE(_a) ONE(_b)\n"
                                "// @BE f_a\n// @BE f_b\nALL()")),
            "f_a: ret; f_b: ret");
  EXPECT_THAT(Annotated("#define MAKE(S) void f##S(BE::Tensor o, int* bad) {}\n\n// @BE f_a\nMAKE(_a)"),
              IsInvalid(HasSubstr("k.cu:4: parameter 2 'bad' of function 'f_a'")));
}

// The meaning of a macro depends on conditionals, and so does the parameter.
TEST(InferenceTest, DoesNotGuessWhatConditionalsDecide) {
  const std::string user = "void f(IN BE::Tensor a, BE::Tensor b) {}";
  for (const char* macro :
       {"#ifdef X\n#define IN const\n#else\n#define IN\n#endif\n",
        "#ifdef X\n#define IN const\n#else\n#define IN const\n#endif\n",
        "#ifdef X\n#define IN\n#else\n#define IN const\n#endif\n", "#ifdef X\n#define IN const\n#endif\n",
        "#define IN\n#ifdef X\n#undef IN\n#endif\n", "#define IN\n#if X > 1\n#undef IN\n#define IN const\n#endif\n",
        "#include \"config.h\"\n#ifndef IN\n#define IN const\n#endif\n"}) {
    EXPECT_THAT(Listed(macro + user, {"f"}),
                IsInvalid(HasSubstr("an #if among its parameters, or a macro that an #if")))
        << macro;
    EXPECT_EQ(Described(Listed(macro + user, {"f arg ret"})), "f: arg ret") << macro;
  }
}

TEST(InferenceTest, FollowsConditionalsThatAreCertain) {
  const std::string user = "void f(IN BE::Tensor a, BE::Tensor b) {}";
  for (const char* macro :
       {"#ifndef IN\n#define IN const\n#endif\n", "#if !defined(IN)\n#define IN const\n#endif\n",
        "#ifndef G\n#define G\n#define IN const\n#endif\n", "#ifndef G\n#define G\n#define IN const\n",
        "#include \"x.h\"\n#ifndef G\n#define G\n#define IN const\n#endif\n",
        "#define IN const\n#ifndef IN\n#define IN\n#endif\n",
        "#define IN const\n#ifdef IN\n#else\n#define IN\n#endif\n",
        "#ifdef X\n#define IN\n#endif\n#undef IN\n#define IN const\n"}) {
    EXPECT_EQ(Described(Listed(macro + user, {"f"})), "f: arg ret") << macro;
  }
  const std::string two =
      "#ifdef X\n#define MAKE(n) void n(BE::Tensor o) { fast(); }\n#else\n"
      "#define MAKE(n) void n(BE::Tensor o) {}\n#endif\n#ifdef X\n#define COLD cold\n#else\n"
      "#define COLD\n#endif\n";
  EXPECT_EQ(Described(Listed(two + "COLD MAKE(f)", {"f"})), "f: ret");
}

TEST(InferenceTest, KnowsTheMacrosOfFlags) {
  const auto with = [](const std::vector<std::string>& lines, const std::string& text) {
    v1::Functions functions;
    functions.add_function()->set_name("f");
    return Described(ResolveFunctions({{"k.cu", text}}, functions, lines));
  };
  const std::string real = "#ifndef REAL\n#define REAL float\n#endif\nvoid f(BE::Tensor o, REAL x) {}";
  EXPECT_EQ(with({}, real), "f: ret attr.x:float32");
  EXPECT_EQ(with({"#define REAL double"}, real), "f: ret attr.x:float64");
  EXPECT_EQ(with({"#define REAL double", "#undef REAL"}, real), "f: ret attr.x:float32");
  const std::string either = "#ifdef A\nvoid f(BE::Tensor o, int x) {}\n#else\nvoid f(BE::Tensor o) {}\n#endif";
  EXPECT_EQ(with({"#define A 1"}, either), "f: ret attr.x:int32");
  EXPECT_THAT(with({}, either), HasSubstr("overloaded"));
}

TEST(InferenceTest, FollowsNamesOfTypes) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"using T = BE::Tensor; void f(const T a, T& b)", "f: arg ret"},
      {"typedef const BE::Tensor In; using Real = double; void f(In a, BE::Tensor b, Real c)",
       "f: arg ret attr.c:float64"},
      {"using Tensor = const BE::Tensor; void f(Tensor a, BE::Tensor b)", "f: arg ret"},
      {"using A = int; using B = A; void f(BE::Tensor o, B b, const A a)", "f: ret attr.b:int32 attr.a:int32"},
      {"using A = int; namespace n { using A = float; void f(BE::Tensor o, A a); }", "Name the tokens"},
      {"namespace n { using BE::Tensor; void f(const Tensor a, Tensor o); }", "f: arg ret"},
      {"namespace be = BE; void f(const be::Tensor a, be::Out<float> o)", "f: arg ret:float32"},
      {"namespace a { namespace be = ::BE; void f(be::Out<be::bfloat16_t> o, be::Span<const be::Tensor> a); }",
       "f: ret:bfloat16 args"},
      {"namespace be = other; void f(be::Tensor o)", "'o'"},
      {"using R = BE::Tensor&; void f(R o)", "f: ret"},
      {"using real = float; using real = float; void f(BE::Tensor real, ::real x)", "'x'"},
      {"using real = float; void f(BE::Tensor real, real x)", "f: ret attr.x:float32"},
      {"#ifdef D\nusing real = double;\n#else\nusing real = float;\n#endif\nvoid f(BE::Tensor o, real x)", "'x'"},
      {"using R = BE::Tensor&; void f(const R o)", "'const R o'"},
      {"using P = BE::Tensor*; void f(BE::Tensor o, const P p)", "'const P p'"},
      {"struct Tensor {}; void f(const Tensor a, BE::Tensor o)", "the source declares that type"},
      {"namespace n { class Tensor; void f(const Tensor a, BE::Tensor o); }", "the source declares that type"},
      {"template <class T> struct Tensor {}; void f(const Tensor<int> a, BE::Tensor o)", "'a'"},
      {"using A = A; void f(BE::Tensor o, A a)", "'a'"},
      {"using F = void(int); void f(BE::Tensor o, F a)", "'a'"},
      {"typedef struct CUstream_st* cudaStream_t; typedef signed char int8_t; void f(BE::Tensor o, int8_t a, "
       "cudaStream_t s)",
       "f: ret attr.a:int8 stream"},
      {"struct CUstream_st; using cudaStream_t = CUstream_st*; void f(BE::Tensor o, cudaStream_t s)", "f: ret stream"},
      {"struct S { using int32_t = float; }; void f(BE::Tensor o, int32_t a)", "f: ret attr.a:int32"},
  };
  for (const auto& [source, expected] : cases) {
    EXPECT_THAT(Described(Listed(source + ";", {"f"})), HasSubstr(expected)) << source;
  }
  EXPECT_EQ(Described(Listed("using In = const BE::Tensor; template <class T> void f(In a, BE::Tensor o, T b) {}",
                             {"f<int>"})),
            "f_int: arg ret attr.b:int32");
}

TEST(InferenceTest, NamesTypesThatTwoBranchesDeclare) {
  const std::string be = "using Tensor = BE::Tensor;\n";
  const std::string user = "void f(const Tensor& a, Tensor& b) {}\n";
  EXPECT_EQ(Described(Listed("#ifdef X\n" + be + "#else\n" + be + "#endif\n" + user, {"f"})), "f: arg ret");
  for (const char* other : {"using Tensor = torch::Tensor;\n", "using Tensor = const BE::Tensor;\n",
                            "typedef const BE::Tensor Tensor;\n", "struct Tensor { int x; };\n"}) {
    for (const std::string& types : {other + be, be + other}) {
      const std::string source = StrCat("#ifdef X\n", types, "#endif\n", user);
      EXPECT_THAT(Listed(source, {"f"}), IsInvalid(AllOf(HasSubstr("k.cu:5"), HasSubstr("Name the tokens")))) << source;
      EXPECT_EQ(Described(Listed(source, {"f arg ret"})), "f: arg ret") << source;
    }
  }
}

TEST(InferenceTest, NamesWhatTwoDeclarationsSayOfConst) {
  EXPECT_THAT(Listed("void f(BE::Tensor a, BE::Tensor b);\nvoid f(const BE::Tensor a, BE::Tensor b) {}", {"f"}),
              IsInvalid(AllOf(HasSubstr("declared twice (k.cu:1, k.cu:2)"), HasSubstr("const in only one of them"))));
  EXPECT_THAT(Listed("void f(BE::Tensor& a);\nvoid f(const BE::Tensor& a) {}", {"f"}),
              IsInvalid(HasSubstr("overloaded")));
}

TEST(InferenceTest, ReadsWhatIsRare) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"template <class T> requires (sizeof(T) == 4) void f(BE::Tensor o, T a) {}", "f_int: ret attr.a:int32"},
      {"template <class T> void f(BE::Tensor o, T a) requires (sizeof(T) >= 4) {}", "f_int: ret attr.a:int32"},
      {"template <class T, bool b = (4 > 2), class U = T> void f(BE::Tensor o, U a) {}", "f_int: ret attr.a:int32"},
  };
  for (const auto& [source, expected] : cases) EXPECT_EQ(Described(Listed(source, {"f<int>"})), expected) << source;
  EXPECT_EQ(Described(Listed("void f(const BE::Tensor a <:<:maybe_unused:>:>, BE::Tensor o) <% %>", {"f"})),
            "f: arg ret");
  EXPECT_EQ(Described(Listed("void \xc3\xa9"
                             "f(int* p);\nvoid f(BE::Tensor \xce\xb2) {}",
                             {"f"})),
            "f: ret");
  EXPECT_THAT(Inferred("BE::Tensor o, float \xce\xbb"), HasSubstr("an attribute's name may contain only the letters"));
  EXPECT_THAT(Inferred("BE::Tensor o, float a$"), HasSubstr("an attribute's name may contain only the letters"));
  EXPECT_THAT(Inferred("BE::Tensor o, unsigned __int128"), HasSubstr("cannot read"));
  EXPECT_EQ(Described(Listed("#define CAT(a, b) a##b\n#define MAKE_(n) void n(BE::Tensor o)\nCAT(MAKE, _)(f);", {"f"})),
            "f: ret");
}

TEST(InferenceTest, NamesTheSourceOfSeveral) {
  v1::Functions functions;
  functions.set_from_annotations(true);
  const auto specs =
      ResolveFunctions({{"a.cu", "#define T BE::Tensor\n"}, {"b.cu", "\n// @BE f\nvoid f(T o, int* p);"}}, functions);
  EXPECT_THAT(specs, IsInvalid(HasSubstr("b.cu:3: parameter 2 'p'")));
}

// Sources come from other users: any text must get an answer.
TEST(InferenceTest, SurvivesAnyText) {
  const std::string text =
      "#define M(a, ...) void f##a(__VA_ARGS__)\n#if 0\n#else\nnamespace n { extern \"C\" { }\n#endif\n"
      "// @BE f_x arg ret\nM(_x, const BE::Tensor a = {1, \"(\"}, BE::Tensor b[[x]]) -> void {\n}\n#define Q #Q ## "
      "Q\nQ";
  for (size_t begin = 0; begin < text.size(); begin += 3) {
    for (size_t size = 1; size <= text.size() - begin; size += 5) {
      const std::string part = text.substr(begin, size);
      Annotated(part).status().IgnoreError();
      Listed(part, {"f_x", "f"}).status().IgnoreError();
    }
  }
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += i % 3 == 0 ? "f(" : i % 3 == 1 ? "{" : "\n#if 1\n";
  EXPECT_THAT(Listed(deep, {"f"}), Not(IsOk()));
}

// ---- __global__ functions ----

// The tokens of `void f(parameters)`, a __global__ function, or the error.
std::string Launched(const std::string& parameters, const std::string& before = "__global__ void ") {
  const auto specs = Listed(StrCat(before, "f(", parameters, ") {}"), {"f"});
  if (specs.ok()) {
    EXPECT_TRUE((*specs)[0].is_global);
  }
  return Described(specs);
}

TEST(GlobalFunctionTest, PointersAreArraysAndNumbersAttributes) {
  EXPECT_EQ(Launched("const float* a, const float* b, float* y, int n"),
            "f: arg:float32 arg:float32 ret:float32 attr.n:int32");
  EXPECT_EQ(Launched("float const* __restrict__ a, const __half* b, __nv_bfloat16* const y, bool* z"),
            "f: arg:float32 arg:float16 ret:bfloat16 ret:bool");
  EXPECT_EQ(Launched("const double x[], unsigned char y[4], const void* any, BE::complex64_t* z"),
            "f: arg:float64 ret:uint8 arg ret:complex64");
  EXPECT_EQ(Launched("int* y, bool a, size_t b, int64_t c, unsigned d, const double e, char g, int device_ordinal"),
            "f: ret:int32 attr.a:bool attr.b:uint64 attr.c:int64 attr.d:uint32 attr.e:float64 attr.g:int8 "
            "attr.device_ordinal:int32");
  EXPECT_EQ(Launched("BE::In<float, 2> x, const BE::Tensor z, BE::Out<int> y, const __grid_constant__ int n = 3"),
            "f: arg:float32[2] arg ret:int32 attr.n:int32");
  EXPECT_EQ(Described(Listed("using real = double;\n__global__ void f(const real* x, real* y) {}", {"f"})),
            "f: arg:float64 ret:float64");
}

TEST(GlobalFunctionTest, TheDeclarationMayHaveWhatCudaAdds) {
  for (const char* before :
       {"extern \"C\" __global__ void ", "__global__ void __launch_bounds__(32 * 8, 2) ", "static __global__ void ",
        "__global__ __launch_bounds__(64) void ", "__global__ void __cluster_dims__(2, 1, 1) "}) {
    EXPECT_EQ(Launched("const int* x, int* y", before), "f: arg:int32 ret:int32") << before;
  }
  EXPECT_EQ(Launched("const int* x, int* y", "__global__ void f(const int*, int*);\n__global__ void "),
            "f: arg:int32 ret:int32");
  const auto specs = Annotated(
      "namespace a { template <class T, int N> __global__ void f(const T* x, T* y) {} }\n"
      "// @BE f<double, 2>");
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_THAT(Described(specs), HasSubstr(": arg:float64 ret:float64"));
  EXPECT_EQ((*specs)[0].Callee(), "a::f<double, 2>");
}

TEST(GlobalFunctionTest, VectorsAreArraysOfTheirElements) {
  const std::pair<const char*, const char*> types[] = {
      {"float4", "float32"},  {"uchar4", "uint8"},          {"char2", "int8"},
      {"short3", "int16"},    {"ushort1", "uint16"},        {"int2", "int32"},
      {"uint3", "uint32"},    {"longlong2", "int64"},       {"ulong4", "uint64"},
      {"double2", "float64"}, {"double4_16a", "float64"},   {"half2", "float16"},
      {"__half2", "float16"}, {"nv_bfloat162", "bfloat16"}, {"__nv_bfloat162", "bfloat16"},
      {"uint", "uint32"},     {"uchar", "uint8"},           {"ushort", "uint16"},
      {"ulong", "uint64"},    {"u_int16_t", "uint16"},      {"__nv_fp8x4_e4m3", "float8_e4m3fn"},
      {"std::byte", "uint8"}, {"char16_t", "uint16"},       {"__nv_fp8x2_e5m2", "float8_e5m2"}};
  for (const auto& [type, element] : types) {
    EXPECT_EQ(Launched(StrCat("const ", type, "* x, ", type, "* y")), StrCat("f: arg:", element, " ret:", element));
  }
  EXPECT_EQ(Launched("float* y, uint n, ulong m"), "f: ret:float32 attr.n:uint32 attr.m:uint64");
  EXPECT_EQ(Described(Listed("typedef unsigned long long uint;\n__global__ void f(uint* y) {}", {"f"})),
            "f: ret:uint64");
  for (const char* type : {"float5", "float0", "float4x", "vec4"}) {
    EXPECT_THAT(Launched(StrCat(type, "* y")), HasSubstr("cannot read its element type")) << type;
  }
}

TEST(GlobalFunctionTest, PointersToRowsArePointers) {
  EXPECT_EQ(Launched("const float x[][4], int y[][2][8]"), "f: arg:float32 ret:int32");
  EXPECT_EQ(Launched("const float (*x)[4], int (* __restrict__ y)[2][8]"), "f: arg:float32 ret:int32");
  EXPECT_EQ(Launched("const float4 (*x)[4], float (*)[8]"), "f: arg:float32 ret:float32");
}

TEST(GlobalFunctionTest, WhatNoLaunchCanPassIsAnError) {
  for (const char* parameters : {"S s, float* y", "std::string_view s, float* y", "BE::Span<const int> s, float* y",
                                 "const BE::Tensor* s, float* y", "int (*s)(int), float* y"}) {
    EXPECT_THAT(Launched(parameters), AllOf(HasSubstr("k.cu:1: parameter 1"), HasSubstr("BE::In<T>"))) << parameters;
  }
  EXPECT_THAT(Launched("const Pair* x, float* y"), HasSubstr("Write out the tokens, with arg:<element type> for this"));
  EXPECT_THAT(Launched("const float* x, vec<float, 3>* y"),
              HasSubstr("Write out the tokens, with ret:float32 for this"));
  EXPECT_THAT(Launched("float** y"), HasSubstr("a pointer to pointers"));
  EXPECT_THAT(Launched("float* y[4]"), HasSubstr("a pointer to pointers"));
  EXPECT_THAT(Launched("float (*y[3])[4]"), HasSubstr("parameter 1"));
  EXPECT_THAT(Launched("float& y"), HasSubstr("by value"));
  EXPECT_THAT(Launched("BE::Out<float>& y"), HasSubstr("by value"));
  EXPECT_THAT(Launched("float* y, __half a"), HasSubstr("take a float"));
  EXPECT_THAT(Launched("float* y, int64_t stream"), HasSubstr("leave the parameter out"));
  EXPECT_THAT(Launched("float* y, cudaStream_t s"), HasSubstr("leave the parameter out"));
  EXPECT_THAT(Launched("float* y, int block"), HasSubstr("'block' has the name of a launch attribute"));
  EXPECT_THAT(Launched("const float* y"), HasSubstr("a pointer that is not const"));
  EXPECT_THAT(Launched("float* y) {}\n__global__ void f(int* y"), HasSubstr("is overloaded (k.cu:1, k.cu:2"));
}

TEST(GlobalFunctionTest, ADeclarationMayLeaveOutNamesOrUseOthers) {
  const std::string definition = "__global__ void f(const Quad* p, S s, float* out) {}";
  for (const char* names : {"const Quad*, S, float*", "const Quad * q, S other, float* y"}) {
    const std::string text = StrCat("__global__ void f(", names, ");\n", definition);
    EXPECT_THAT(Described(Listed(text, {"f arg:float32 attr.n:int32 ret"})), Not(HasSubstr("overloaded"))) << names;
  }
  const std::string two = "__global__ void f(float4* y);\n__global__ void f(float2* y) {}";
  EXPECT_THAT(Described(Listed(two, {"f ret:float32"})), HasSubstr("is overloaded (k.cu:1, k.cu:2"));
}

TEST(GlobalFunctionTest, TokensAgreeWithTheParameters) {
  const std::string text = "__global__ void f(float* x, const Quad* w, float* y, int n) {}";
  EXPECT_EQ(Described(Listed(text, {"f arg arg:float32 ret attr.rows"})),
            "function 'f' (k.cu:1) has no parameter 'rows', so 'attr.rows' has no type. Write 'attr.rows:<type>' if "
            "the parameter has another name");
  EXPECT_EQ(Described(Listed(text, {"f arg arg:float32 ret attr.rows:int32"})),
            "f: arg:float32 arg:float32 ret:float32 attr.rows:int32");
  EXPECT_THAT(Described(Listed(text, {"f arg arg ret attr.n"})),
              HasSubstr("parameter 2: kernix cannot read its element type"));
  EXPECT_THAT(Described(Listed(text, {"f arg ret:float32 ret attr.n"})), HasSubstr("says 'ret:float32' there"));
  EXPECT_THAT(Described(Listed(text, {"f arg:int32 arg:float32 ret attr.n"})), HasSubstr("says 'arg:int32' there"));
  for (const char* token :
       {"stream", "device_ordinal", "attr.n?", "attr.n:string", "arg?", "args...", "arg.token", "scratch:4"}) {
    EXPECT_THAT(Described(Listed(text, {StrCat("f arg arg:float32 ret ", token)})),
                HasSubstr("is not for a __global__ function"))
        << token;
  }
  EXPECT_THAT(Described(Listed("__global__ void f(int* y) {}\n__global__ void f(float* y) {}", {"f ret:int32"})),
              HasSubstr("give the exported __global__ function a name of its own"));
}

TEST(GlobalFunctionTest, VectorsAndStructsOfTheSourceAreArrayAttributes) {
  EXPECT_EQ(Launched("float* y, float3 a, const uchar4 b, dim3 c"),
            "f: ret:float32 attr.a:float32[] attr.b:uint8[] attr.c:uint32[]");
  for (const char* declared : {"struct S { int i; };", "class alignas(16) S { };", "union S { int i; };", "struct S;",
                               "struct __align__(8) S : Base { };", "typedef struct S S;\nstruct S { int i; };",
                               "struct [[nodiscard]] S { };"}) {
    const std::string text = StrCat(declared, "\n__global__ void f(float* y, const S s) {}");
    EXPECT_EQ(Described(Listed(text, {"f"})), "f: ret:float32 attr.s:uint8[]") << declared;
  }
  for (const char* declared : {"", "enum S { one };", "enum class S { one };",
                               "#ifdef X\nusing S = float;\n#else\nusing S = double;\n#endif"}) {
    const std::string text = StrCat(declared, "\n__global__ void f(float* y, S s) {}");
    EXPECT_THAT(Described(Listed(text, {"f"})), HasSubstr("parameter 2 's' of function 'f' is 'S s'")) << declared;
  }
}

TEST(GlobalFunctionTest, AHostFunctionOfThatNameIsMeant) {
  const auto specs = Listed("__global__ void f(int* y, int n) {}\nvoid f(BE::Tensor o) {}", {"f"});
  ASSERT_TRUE(specs.ok()) << specs.status();
  EXPECT_EQ(Described(specs), "f: ret");
  EXPECT_FALSE((*specs)[0].is_global);
}

}  // namespace
}  // namespace kernix::language
