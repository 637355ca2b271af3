#include "brainevent/common.h"
// @BE f
void f(const BE::Tensor a, BE::Tensor& o, float x = 1.5f, int64_t stream = 0) {}
