#if 0
// @BE g
#elif defined(X) && \
  Y
void f(BE::Tensor o, int x)
#else
void f(BE::Tensor o)
#endif
{
#if 1
}
#else
}}
#endif
