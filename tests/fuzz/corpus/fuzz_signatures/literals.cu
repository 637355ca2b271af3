const char* s = R"x(void f(int))" )x" "\"" u8"x"; char c = '"'; int n = 1'000;
void f(BE::Tensor o, bool b = 1 < 2, int c = V<1, 2>::v, int d = [](int a, int b) { return a; }(1, 2)) noexcept try {} catch (...) {}
