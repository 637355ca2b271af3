// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/spec/arg_spec.h"

#include "common/base/error.h"
#include "daemon/language/spec/function_spec.h"
#include "kernix/v1/kernix.pb.h"
#include "tests/support/test_util.h"

namespace kernix::language {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

FunctionSpec Spec(const std::vector<std::string>& tokens) {
  FunctionSpec spec{"f", {}};
  for (const std::string& token : tokens) spec.parameters.push_back(ParseToken("f", token).value().parameter);
  return spec;
}

template <typename M>
auto IsInvalid(const M& message) {
  return HasError(absl::StatusCode::kInvalidArgument, message);
}

TEST(ArgSpecTest, ReadsTokensAndAliases) {
  EXPECT_THAT(Spec({"arg", "ret", "stream", "attr.alpha:float32"}).Tokens(),
              ElementsAre("arg", "ret", "stream", "attr.alpha:float32"));
  EXPECT_THAT(Spec({"args", "rets", "ctx.stream", "attrs.n:int64"}).Tokens(),
              ElementsAre("arg", "ret", "stream", "attr.n:int64"));
}

TEST(ArgSpecTest, ReadsEveryAttributeType) {
  for (const char* type : {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
                           "bfloat16", "float32", "float64"}) {
    const std::string token = std::string("attr.x:") + type;
    EXPECT_THAT(Spec({token}).Tokens(), ElementsAre(token));
  }
}

TEST(ArgSpecTest, ReadsStringsAndArrays) {
  for (const char* type : {"string", "int8[]", "uint8[]", "int16[]", "uint16[]", "int32[]", "uint32[]", "int64[]",
                           "uint64[]", "float16[]", "float32[]", "float64[]"}) {
    const std::string token = std::string("attr.x:") + type;
    EXPECT_THAT(Spec({token}).Tokens(), ElementsAre(token));
  }
}

TEST(ArgSpecTest, ReadsElementTypesAndRanks) {
  const std::vector<std::string> tokens = {
      "arg:float32", "arg:float8_e4m3b11fnuz[0]", "arg", "ret:bfloat16[8]", "ret:complex128",
      "ret",         "scratch:arg1.numel()"};
  EXPECT_EQ(Spec(tokens).Tokens(), tokens);
  EXPECT_THAT(CheckSpec(Spec(tokens)), IsOk());
}

TEST(ArgSpecTest, RefusesOtherElementTypesAndRanks) {
  EXPECT_THAT(ParseToken("f", "arg:float"),
              IsInvalid(AllOf(HasSubstr("the token 'arg:float' has the element type 'float'. Element types: bool, "),
                              HasSubstr("float8_e8m0fnu"))));
  for (const char* type : {"", "int4", "string", "float32 ", "[2]"}) {
    EXPECT_THAT(ParseToken("f", std::string("ret:") + type), IsInvalid(HasSubstr("has the element type"))) << type;
  }
  for (const char* rank : {"[]", "[9]", "[-1]", "[10]", "[2", "[2]]", "[x]", "[2]?"}) {
    EXPECT_THAT(ParseToken("f", std::string("arg:int8") + rank), IsInvalid(HasSubstr("it must be [0] to [8]"))) << rank;
  }
}

TEST(ArgSpecTest, ReadsWhatGoesBeyondTheReference) {
  const std::vector<std::string> optional = {"arg.token", "arg", "arg?", "arg?", "rets...", "ret.token"};
  EXPECT_EQ(Spec(optional).Tokens(), optional);
  EXPECT_THAT(CheckSpec(Spec(optional)), IsOk());
  const std::vector<std::string> open = {"device_ordinal", "args...", "arg", "ret", "scratch:4*arg0.numel()"};
  EXPECT_EQ(Spec(open).Tokens(), open);
  EXPECT_THAT(CheckSpec(Spec(open)), IsOk());
  EXPECT_THAT(CheckSpec(Spec({"ret.token"})), IsOk());
}

TEST(ArgSpecTest, ChecksWhatGoesBeyondTheReference) {
  EXPECT_THAT(CheckSpec(Spec({"ret", "args...", "args..."})), IsInvalid(HasSubstr("duplicate 'args...'")));
  EXPECT_THAT(CheckSpec(Spec({"rets...", "rets..."})), IsInvalid(HasSubstr("duplicate 'rets...'")));
  EXPECT_THAT(CheckSpec(Spec({"ret", "device_ordinal", "device_ordinal"})), IsInvalid(HasSubstr("'device_ordinal'")));
  EXPECT_THAT(CheckSpec(Spec({"ret", "args...", "arg?"})), IsInvalid(HasSubstr("cannot be combined")));
  EXPECT_THAT(CheckSpec(Spec({"arg?", "arg", "ret"})), IsInvalid(HasSubstr("an argument follows 'arg?'")));
  EXPECT_THAT(CheckSpec(Spec({"arg?", "arg.token", "ret"})), IsInvalid(HasSubstr("an argument follows 'arg?'")));
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "scratch:arg1.numel()"})), IsInvalid(HasSubstr("names 'arg1'")));
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "scratch:ret1.numel()"})), IsInvalid(HasSubstr("names 'ret1'")));
  EXPECT_THAT(CheckSpec(Spec({"arg", "arg?", "ret", "scratch:x.arg7+arg1->numel()+argument"})), IsOk());
}

TEST(ArgSpecTest, ANameInScratchIsOneThing) {
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "attr.arg0:int32", "scratch:4*arg0"})),
              IsInvalid(AllOf(HasSubstr("names 'arg0', which is both a tensor"), HasSubstr("an attribute"))));
  EXPECT_THAT(CheckSpec(Spec({"args...", "ret", "attr.args:int32", "scratch:4*args"})), IsInvalid(HasSubstr("both")));
  EXPECT_THAT(CheckSpec(Spec({"device_ordinal", "ret", "attr.device_ordinal:int8", "scratch:device_ordinal"})),
              IsInvalid(HasSubstr("both")));
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "attr.arg0:int32", "scratch:4*ret0.numel()"})), IsOk());
  EXPECT_THAT(CheckSpec(Spec({"ret", "attr.arg0:int32", "attr.rets:int32", "scratch:arg0*rets"})), IsOk());
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "scratch:args[0].nbytes()"})),
              IsInvalid(AllOf(HasSubstr("names 'args', which does not exist"), HasSubstr("'args...'"))));
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "scratch:rets[0].nbytes()"})), IsInvalid(HasSubstr("names 'rets'")));
  EXPECT_THAT(CheckSpec(Spec({"args...", "rets...", "scratch:args[0].nbytes()+rets.size()"})), IsOk());
}

TEST(ScratchExpressionTest, MarksEveryOperand) {
  const std::pair<const char*, const char*> expected[] = {
      {"1024", "K->*1024"},
      {"W*W", "K->*W*K->*W"},
      {"4*arg0.numel()+n", "K->*4*K->*arg0.numel()+K->*n"},
      {"n<<2>>1<=3&&n!=4", "K->*n<<K->*2>>K->*1<=K->*3&&K->*n!=K->*4"},
      {"-(n+1)*~size_t(7)", "K.After(\"-\")->*(K->*n+K->*1)*K.After(\"~\")->*size_t(7)"},
      {"4*!!n", "K->*4*K.After(\"!!\")->*n"},
      {"(size_t)n*(a::b<int>)(n*n)", "K->*(size_t)n*K->*(a::b<int>)(n*n)"},
      {"(int64_t)-n", "K->*(int64_t)-n"},
      {"(W)-n", "K->*(K->*W)-K->*n"},
      {"static_cast<long>(n*n)", "K->*static_cast<long>(n*n)"},
      {"sizeof(float)*n", "K->*sizeof(float)*K->*n"},
      {"p?*p:arg0->shape(n-1)", "K->*p?K->**p:K->*arg0->shape(n-1)"},
      {"t[n*n].size()", "K->*t[n*n].size()"},
      {"std::max<long>(n,-5)", "K->*std::max<long>(n,-5)"},
      {"4*F((a),b(2)+1)-G(n)", "K->*4*K->*F((a),b(2)+1)-K->*G(n)"},
      {"a<b?c>d:e", "K->*a<K->*b?K->*c>K->*d:K->*e"},
      {"kOf<float>*n", "K->*kOf<float>*K->*n"},
      {"x::y<3>::z()", "K->*x::y<3>::z()"},
      {"f()", "K->*f()"},
  };
  for (const auto& [written, marked] : expected) EXPECT_EQ(WithOperandsMarked(written, "K"), marked);
  for (const char* odd : {"", "+", "a==", "()", "a..b", "<<", "::", "=", "a<", "[]", "(a", "a)b", "4,", "((((", "f(,",
                          "f(a]", "f(+)", "f(a,"}) {
    WithOperandsMarked(odd, "K");  // any result will do, as long as it ends
  }
}

TEST(ArgSpecTest, ScratchIsOneExpression) {
  for (const char* good : {"1024", "4*arg0.numel()", "Workspace<float>(arg0,k[0])", "arg0==nullptr?1:arg0->nbytes()"}) {
    EXPECT_THAT(ParseToken("f", std::string("scratch:") + good), IsOk()) << good;
  }
  for (const char* bad :
       {"",         "4 * 2", " 4",  "4)+(4", "(4",    "]",   "4]", "k[0", "k[(0])", "4;",      "4}", "[]{return 4;}()",
        "\"text\"", "4//",   "4/*", "4<%",   "4?\?=", "'x'", "#x", "4\\", "\xff",   "R\"(x)\""}) {
    EXPECT_THAT(ParseToken("f", std::string("scratch:") + bad),
                IsInvalid(AllOf(HasSubstr("function 'f'"), HasSubstr("scratch:"), HasSubstr("number of bytes"))))
        << bad;
  }
}

TEST(ArgSpecTest, LeavesATypeOpen) {
  const auto parsed = ParseToken("f", "attrs.alpha");
  ASSERT_THAT(parsed, IsOk());
  EXPECT_FALSE(parsed->typed);
  EXPECT_EQ(parsed->parameter.attribute_name, "alpha");
}

TEST(ArgSpecTest, RefusesUnknownTokens) {
  for (const char* token : {"", "argument", "Arg", "arg ", "attr", "attribute.x", "ctx"}) {
    const auto parsed = ParseToken("f", token);
    EXPECT_THAT(parsed, IsInvalid(AllOf(HasSubstr("function 'f'"), HasSubstr("unknown token"))));
    EXPECT_EQ(KindOf(parsed.status()), v1::ErrorDetail::INVALID_REQUEST);
  }
}

TEST(ArgSpecTest, RefusesBadAttributes) {
  EXPECT_THAT(ParseToken("f", "attr.:int32"), IsInvalid(HasSubstr("not a C++ identifier")));
  EXPECT_THAT(ParseToken("f", "attr.2x:int32"), IsInvalid(HasSubstr("'2x'")));
  EXPECT_THAT(ParseToken("f", "attr.a\"b:int32"), IsInvalid(HasSubstr("not a C++ identifier")));
  EXPECT_THAT(ParseToken("f", "attr.x:float"), IsInvalid(HasSubstr("'float', which XLA cannot pass")));
  EXPECT_THAT(ParseToken("f", "attr.x:"), IsInvalid(HasSubstr("Attribute types")));
  EXPECT_THAT(ParseToken("f", "attr.x:bool[]"), IsInvalid(HasSubstr("cannot pass arrays of bool; pass uint8[]")));
  EXPECT_THAT(ParseToken("f", "attr.x:bfloat16[]"), IsOk());
  EXPECT_THAT(ParseToken("f", "attr.x:string[]"), IsInvalid(HasSubstr("cannot pass arrays of string")));
  EXPECT_THAT(ParseToken("f", "attr.x:float32[][]"), IsInvalid(HasSubstr("'float32[][]'")));
  EXPECT_THAT(ParseToken("f", "attr.x:complex64"), IsInvalid(HasSubstr("real and imaginary parts as two")));
}

TEST(ArgSpecTest, ChecksWholeLists) {
  EXPECT_THAT(CheckSpec(Spec({"arg", "ret", "stream"})), IsOk());
  EXPECT_THAT(CheckSpec(Spec({"ret"})), IsOk());
  EXPECT_THAT(CheckSpec(Spec({"ret", "stream", "stream"})), IsInvalid(HasSubstr("duplicate 'stream'")));
  EXPECT_THAT(CheckSpec(Spec({"arg", "stream"})), IsInvalid(HasSubstr("no 'ret'")));
  EXPECT_THAT(CheckSpec(Spec({})), IsInvalid(HasSubstr("no 'ret'")));
  EXPECT_THAT(CheckSpec(Spec({"ret", "attr.x:int32", "attr.x:int64"})),
              IsInvalid(HasSubstr("duplicate attribute 'x'")));
}

TEST(ArgSpecTest, ChecksFunctionNames) {
  EXPECT_THAT(CheckFunctionName("vector_add2"), IsOk());
  EXPECT_THAT(CheckFunctionName("2add"), IsInvalid(HasSubstr("'2add' is not a C++ identifier")));
  EXPECT_THAT(CheckFunctionName(""), IsInvalid(HasSubstr("''")));
  EXPECT_THAT(CheckFunctionName("f(); int g"), IsInvalid(HasSubstr("not a C++ identifier")));
  EXPECT_THAT(CheckFunctionName("caf\xc3\xa9"), IsInvalid(HasSubstr("'caf\xc3\xa9'")));
  EXPECT_THAT(CheckFunctionName("caf\xe9"), IsInvalid(HasSubstr("'caf\\xe9'")));
  EXPECT_THAT(CheckFunctionName("double"), IsInvalid(HasSubstr("keyword")));
}

TEST(FunctionSpecTest, NamesItsHandlerAndCounts) {
  const FunctionSpec spec = Spec({"arg", "arg", "ret", "attr.x:int8"});
  EXPECT_EQ(spec.HandlerSymbol(), "kernix_handler_f");
  EXPECT_EQ(spec.CountOf(ParameterKind::kArgument), 2);
  EXPECT_EQ(spec.CountOf(ParameterKind::kStream), 0);
}

}  // namespace
}  // namespace kernix::language
