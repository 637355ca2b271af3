// SPDX-License-Identifier: Apache-2.0
#include "daemon/language/write/prologue.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/base/strings.h"
#include "common/cxx/lexer.h"
#include "common/cxx/preprocessor.h"
#include "daemon/language/spec/words.h"

namespace kernix::language {
namespace {

// A header and the names that require it.
struct HeaderNames {
  std::string_view header;
  std::string_view names;
};

// Names that are recognised only after "std::", or anywhere once the text contains `using namespace std`.
constexpr HeaderNames kStdNames[] = {
    {"algorithm",
     "all_of any_of binary_search clamp copy_if count count_if equal_range find find_if find_if_not for_each generate "
     "includes "
     "inplace_merge is_heap is_sorted iter_swap lexicographical_compare lower_bound make_heap max_element merge "
     "min_element "
     "minmax minmax_element next_permutation none_of nth_element partial_sort partition pop_heap prev_permutation "
     "push_heap "
     "remove remove_if replace replace_if reverse rotate sample search shuffle sort sort_heap stable_sort transform "
     "unique "
     "upper_bound min max fill fill_n copy copy_n copy_backward equal mismatch"},
    {"array", "array to_array"},
    {"atomic",
     "atomic atomic_flag atomic_bool atomic_int atomic_thread_fence memory_order memory_order_relaxed "
     "memory_order_acquire memory_order_release memory_order_acq_rel memory_order_seq_cst"},
    {"chrono", "chrono"},
    {"cmath",
     "abs fabs fma fmod fmin fmax sqrt cbrt hypot pow exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan "
     "atan2 "
     "sinh cosh tanh asinh acosh atanh erf erfc tgamma lgamma floor ceil round trunc rint nearbyint lround llround "
     "lrint "
     "remainder copysign signbit isnan isinf isfinite isnormal frexp ldexp modf scalbn nextafter fdim logb ilogb"},
    {"complex", "complex conj polar norm arg real imag proj"},
    {"cstdio", "printf fprintf snprintf sprintf puts fputs fflush FILE fopen fclose vsnprintf"},
    {"cstdlib",
     "malloc calloc realloc free abort exit atoi atof strtol strtod getenv rand srand qsort div aligned_alloc"},
    {"cstring", "memcpy memset memmove memcmp strlen strcmp strncmp strcpy strncpy strcat strstr strchr strerror"},
    {"exception", "exception_ptr current_exception rethrow_exception make_exception_ptr terminate uncaught_exceptions"},
    {"functional",
     "function bind hash reference_wrapper ref cref plus minus multiplies divides less less_equal greater "
     "greater_equal equal_to not_equal_to invoke mem_fn logical_and logical_or bit_and bit_or bit_xor negate"},
    {"initializer_list", "initializer_list"},
    {"iostream", "cout cerr clog cin endl flush"},
    {"iterator",
     "iterator back_inserter front_inserter inserter advance distance next prev begin end cbegin cend rbegin rend "
     "size data empty iterator_traits reverse_iterator make_move_iterator istream_iterator ostream_iterator"},
    {"limits", "numeric_limits float_round_style float_denorm_style"},
    {"memory",
     "unique_ptr shared_ptr weak_ptr make_unique make_shared allocator addressof enable_shared_from_this align "
     "default_delete uninitialized_copy uninitialized_fill"},
    {"mutex",
     "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex timed_mutex lock defer_lock "
     "adopt_lock"},
    {"numeric",
     "accumulate iota inner_product partial_sum adjacent_difference reduce transform_reduce inclusive_scan "
     "exclusive_scan gcd lcm"},
    {"optional", "optional nullopt make_optional nullopt_t in_place bad_optional_access"},
    {"sstream", "stringstream ostringstream istringstream stringbuf"},
    {"ostream", "ostream"},
    {"stdexcept",
     "runtime_error logic_error invalid_argument out_of_range overflow_error underflow_error range_error "
     "domain_error length_error"},
    {"string", "string to_string stoi stol stoll stoul stof stod getline basic_string wstring char_traits"},
    {"string_view", "string_view basic_string_view"},
    {"system_error", "error_code system_error errc"},
    {"tuple", "tuple make_tuple tie forward_as_tuple get apply tuple_size tuple_element tuple_cat ignore"},
    {"type_traits",
     "is_same is_same_v enable_if enable_if_t conditional conditional_t is_integral is_integral_v is_floating_point "
     "is_floating_point_v is_arithmetic is_arithmetic_v is_signed is_signed_v is_unsigned is_unsigned_v is_pointer "
     "is_pointer_v "
     "is_base_of is_base_of_v is_convertible is_convertible_v remove_reference remove_reference_t remove_cv "
     "remove_cv_t "
     "remove_const remove_const_t remove_pointer remove_pointer_t decay decay_t true_type false_type integral_constant "
     "bool_constant void_t make_signed make_signed_t make_unsigned make_unsigned_t common_type common_type_t "
     "underlying_type "
     "underlying_type_t is_trivially_copyable is_trivially_copyable_v is_void is_void_v is_enum is_enum_v is_class "
     "is_class_v "
     "is_const is_const_v add_const add_const_t is_invocable is_invocable_v invoke_result invoke_result_t result_of "
     "aligned_storage alignment_of is_constructible is_constructible_v conjunction disjunction negation "
     "is_null_pointer"},
    {"unordered_map", "unordered_map unordered_multimap"},
    {"utility",
     "move forward swap exchange pair make_pair declval integer_sequence index_sequence make_index_sequence "
     "index_sequence_for piecewise_construct as_const in_place_t"},
    {"variant", "variant visit monostate holds_alternative get_if bad_variant_access variant_size"},
    {"vector", "vector"},
};

// Names from C that work without "std::".
constexpr HeaderNames kGlobalNames[] = {
    {"cassert", "assert"},
    {"cfloat", "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON"},
    {"cinttypes", "PRId64 PRIu64 PRIx64 PRId32 PRIu32 PRIx32 PRIi64"},
    {"climits",
     "INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX CHAR_BIT SHRT_MAX SHRT_MIN "
     "USHRT_MAX CHAR_MAX SCHAR_MAX UCHAR_MAX"},
    {"cmath",
     "fabs fabsf fma fmaf fmod fmodf fmin fminf fmax fmaxf sqrt sqrtf cbrt hypot hypotf pow powf exp expf exp2 exp2f "
     "expm1 "
     "expm1f log logf log2 log2f log10 log10f log1p log1pf sin sinf cos cosf tan tanf asin asinf acos acosf atan atanf "
     "atan2 "
     "atan2f sinh sinhf cosh coshf tanh tanhf erf erff erfc erfcf tgamma lgamma floor floorf ceil ceilf round roundf "
     "trunc "
     "truncf rint rintf nearbyint lround lroundf llround lrint copysign copysignf signbit isnan isinf isfinite frexp "
     "ldexp modf "
     "nextafter INFINITY NAN HUGE_VAL M_PI M_E M_PI_2 M_SQRT2 M_LN2 M_PI_4"},
    {"cstdio", "printf fprintf snprintf sprintf puts fputs fflush FILE stderr stdout fopen fclose vsnprintf putchar"},
    {"cstdlib",
     "malloc calloc realloc free abort exit atoi atof strtol strtod getenv rand srand qsort abs labs llabs RAND_MAX "
     "EXIT_FAILURE EXIT_SUCCESS aligned_alloc posix_memalign"},
    {"cstring", "memcpy memset memmove memcmp strlen strcmp strncmp strcpy strncpy strcat strstr strchr strerror"},
};

// Headers of kernix that a text may use. Their names count only after "BE::" or an alias of it: a kernel that opens
// namespace BE may have a Span of its own. Where texts define macros of names that our headers have, those that they
// include come first, too.
constexpr HeaderNames kOwnNames[] = {
    {"brainevent/check.h", ""},          {"brainevent/common.h", ""},   {"brainevent/dispatch.h", ""},
    {"brainevent/dtypes.h", ""},         {"brainevent/float8.h", ""},   {"brainevent/tensor.h", ""},
    {"brainevent/scratch.h", "Scratch"}, {"brainevent/span.h", "Span"}, {"brainevent/typed.h", "In Out"},
};

// The names that require KERNIX_USES_HALF, and prefixes of CUDA's half types and their functions.
constexpr std::string_view kHalfNames[] = {"float16_t", "bfloat16_t", "BE_DISPATCH_FLOATING_AND_HALF",
                                           "BE_DISPATCH_ALL", "BE_DISPATCH_EVERYTHING"};
constexpr std::string_view kHalfPrefixes[] = {"__half",       "__nv_bfloat16",    "nv_bfloat16",
                                              "__float2half", "__float2bfloat16", "__bfloat16"};

using NameTable = absl::flat_hash_map<std::string_view, std::vector<std::string_view>>;

template <size_t kSize>
NameTable MakeTable(const HeaderNames (&entries)[kSize]) {
  NameTable table;
  for (const HeaderNames& entry : entries) {
    for (std::string_view name : Words(entry.names)) table[name].push_back(entry.header);
  }
  return table;
}

const NameTable& StdNames() {
  static const NameTable& table = *new NameTable(MakeTable(kStdNames));
  return table;
}

const NameTable& GlobalNames() {
  static const NameTable& table = *new NameTable(MakeTable(kGlobalNames));
  return table;
}

const NameTable& OwnNames() {
  static const NameTable& table = *new NameTable(MakeTable(kOwnNames));
  return table;
}

bool IsHalfName(std::string_view name) {
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  return std::find(std::begin(kHalfNames), std::end(kHalfNames), name) != std::end(kHalfNames) ||
         std::any_of(std::begin(kHalfPrefixes), std::end(kHalfPrefixes), begins);
}

// `half` is CUDA's type, but also a plausible variable name: it is the type if a declarator or a cast follows.
bool IsHalfType(const std::vector<Token>& tokens, size_t i) {
  if (!tokens[i].Is("half") && !tokens[i].Is("half2")) return false;
  if (i + 2 >= tokens.size()) return false;
  const Token& next = tokens[i + 1];
  const bool operators = next.Is("*") || next.Is("&");
  const bool declares = next.IsIdentifier() ||
                        (operators && (tokens[i + 2].IsIdentifier() || tokens[i + 2].Is(")") || tokens[i + 2].Is(">")));
  const bool argument =
      next.Is(">") && i > 0 && (tokens[i - 1].Is("<") || tokens[i - 1].Is(",") || tokens[i - 1].Is("const"));
  const bool casts = next.Is(")") && i > 0 && tokens[i - 1].Is("(");
  const bool operand = i > 0 && (tokens[i - 1].Is("=") || tokens[i - 1].Is("+") || tokens[i - 1].Is("return"));
  return (declares || argument || casts) && !operand;
}

// XLA's headers include everything that they need.
bool MayLeanOnPrologue(const PrologueHeader& header) { return !header.path.starts_with("xla/"); }

}  // namespace

// Scans texts one after the other and collects what they use.
class PrologueScan::Uses {
  using Headers = std::set<std::string_view>;

 public:
  explicit Uses(const OurNames* ours) : ours_(ours) {}

  void Add(std::string_view text) {
    std::deque<std::string> storage;
    LexInPieces(Lexer(text, storage), [this](const std::vector<Token>& tokens, size_t first) {
      for (size_t i = first; i < tokens.size(); ++i) {
        if (tokens[i].starts_directive) NoteInclude(tokens, i);
        if (tokens[i].starts_directive) NoteDefinition(tokens, i);
        if (tokens[i].IsIdentifier()) NoteName(tokens, i);
      }
      NoteUsingNamespace(tokens);
    });
  }

  std::string Text() const {
    Headers headers = headers_;
    // A `using namespace std` in one text also affects the texts that include it.
    if (std_is_open_) headers.insert(headers_if_open_.begin(), headers_if_open_.end());
    std::string text;
    if (uses_half_) text += "#define KERNIX_USES_HALF 1\n";
    if (headers.count("stdexcept") > 0) text += "#define KERNIX_USES_STDEXCEPT 1\n";
    for (std::string_view header : headers) StrAppend(&text, "#include <", header, ">\n");
    for (std::string_view header : own_headers_) StrAppend(&text, "#include \"", header, "\"\n");
    if (!defines_ours_ || configures_half_) return text;
    for (std::string_view header : included_headers_) StrAppend(&text, "#include \"", header, "\"\n");
    return text;
  }

 private:
  void NoteDefinition(const std::vector<Token>& tokens, size_t i) {
    if (ours_ == nullptr || i + 2 >= tokens.size() || !tokens[i + 1].Is("define")) return;
    if (ours_->contains(tokens[i + 2].text)) defines_ours_ = true;
  }

  void NoteUsingNamespace(const std::vector<Token>& tokens) {
    for (size_t i = 0; i + 2 < tokens.size(); ++i) {
      if (tokens[i].Is("using") && tokens[i + 1].Is("namespace") && tokens[i + 2].Is("std")) std_is_open_ = true;
    }
  }

  // tokens[i] is "BE".
  void NoteAlias(const std::vector<Token>& tokens, size_t i) {
    const size_t before = i > 0 && tokens[i - 1].Is("::") ? i - 1 : i;
    if (before > 2 && tokens[before - 1].Is("=") && tokens[before - 3].Is("namespace"))
      be_names_.emplace(tokens[before - 2].text);
  }

  void NoteName(const std::vector<Token>& tokens, size_t i) {
    const std::string_view name = tokens[i].text;
    const bool qualified = i > 0 && tokens[i - 1].Is("::");
    const bool in_std = qualified && i > 1 && tokens[i - 2].Is("std");
    const bool member = i > 0 && (tokens[i - 1].Is(".") || tokens[i - 1].Is("->"));
    if (in_std) Note(StdNames(), name, headers_);
    if (!qualified && !member) {
      Note(StdNames(), name, headers_if_open_);
      Note(GlobalNames(), name, headers_);
    }
    if (name == "BE") NoteAlias(tokens, i);
    if (qualified && i > 1 && be_names_.contains(tokens[i - 2].text)) Note(OwnNames(), name, own_headers_);
    if (IsHalfName(name) || IsHalfType(tokens, i)) uses_half_ = true;
    if (name.starts_with("__CUDA_NO_")) configures_half_ = true;
  }

  static void Note(const NameTable& table, std::string_view name, Headers& headers) {
    const auto found = table.find(name);
    if (found != table.end()) headers.insert(found->second.begin(), found->second.end());
  }

  // tokens[i] begins a directive.
  void NoteInclude(const std::vector<Token>& tokens, size_t i) {
    if (i + 1 >= tokens.size() || !tokens[i + 1].Is("include")) return;
    size_t end = i + 2;
    while (end < tokens.size() && tokens[end].in_directive && !tokens[end].starts_directive) ++end;
    const auto include = ReadInclude(absl::MakeSpan(tokens).subspan(i + 2, end - i - 2));
    if (!include.has_value()) return;
    if (include->path == "cuda_fp16.h" || include->path == "cuda_bf16.h") uses_half_ = true;
    if (include->path == "stdexcept") headers_.insert("stdexcept");
    if (include->path.starts_with('/')) UseEverything();
    for (const HeaderNames& entry : kOwnNames) {
      if (entry.header == include->path) included_headers_.insert(entry.header);
    }
  }

  void UseEverything() {
    uses_half_ = true;
    for (const HeaderNames& entry : kStdNames) headers_.insert(entry.header);
    for (const HeaderNames& entry : kGlobalNames) headers_.insert(entry.header);
    for (const HeaderNames& entry : kOwnNames) own_headers_.insert(entry.header);
  }

  const OurNames* ours_;
  Headers headers_;
  Headers own_headers_;
  Headers included_headers_;
  std::set<std::string, std::less<>> be_names_ = {"BE"};
  Headers headers_if_open_;  // headers for names without "std::", needed once there is a `using namespace std`
  bool std_is_open_ = false;
  bool uses_half_ = false;
  bool defines_ours_ = false;
  bool configures_half_ = false;  // by macros that must come before cuda_fp16.h
};

PrologueScan::PrologueScan(const std::vector<PrologueHeader>& headers, const OurNames* ours)
    : uses_(std::make_unique<Uses>(ours)) {
  absl::flat_hash_set<std::string_view> added;  // several paths may share one text
  for (const PrologueHeader& header : headers) {
    if (MayLeanOnPrologue(header) && added.insert(header.text).second) Add(header.text);
  }
}
PrologueScan::PrologueScan(const PrologueScan& other) : uses_(std::make_unique<Uses>(*other.uses_)) {}
PrologueScan::~PrologueScan() = default;
void PrologueScan::Add(std::string_view text) { uses_->Add(text); }
std::string PrologueScan::Text() const { return uses_->Text(); }

std::string Prologue(const std::vector<std::string_view>& sources, PrologueScan scan) {
  for (const std::string_view source : sources) scan.Add(source);
  return scan.Text();
}

}  // namespace kernix::language
