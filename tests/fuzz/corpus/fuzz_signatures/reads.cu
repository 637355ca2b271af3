asm(".incbin \"x\""); asm(R"(.include "y")");
#include "/etc/x.h"
#if __has_include(<a.h>) || __has_embed("b")
#embed "c"
#endif
std::vector<half> v;
// @BE f ret
void f(BE::Tensor o) {}
