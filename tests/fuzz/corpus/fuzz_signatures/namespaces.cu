namespace a { inline namespace b { namespace { static void f(BE::Tensor o) {} } } }
extern "C" { void g(BE::Tensor o); }
namespace [[x]] c::d { void f(BE::Tensor o, int* p); }
