#define A(n, ...) void n(BE::Tensor o, ##__VA_ARGS__)
#define B(n, r...) A(n, r)
#define C(n, ...) B(n __VA_OPT__(,) __VA_ARGS__)
#define S(x) #x
C(f, float x, int y) {}
const char* s = S(a "b");
