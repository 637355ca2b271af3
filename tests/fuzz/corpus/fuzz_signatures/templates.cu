template <class T, int N = 3, class... U>
__host__ void f(const BE::Tensor& a, BE::Tensor& o, T x, const T (&y)[N], U... u) {}
template <> void f<int>(int);
