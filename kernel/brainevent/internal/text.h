// SPDX-License-Identifier: Apache-2.0
//
// A message of bounded length, built without the standard library and without allocation, on host and device.
#pragma once
#pragma GCC system_header  // no warnings here for those who include it

#include <stdint.h>

#include "brainevent/internal/macros.h"

namespace BE {
namespace internal {

// Text beyond the limit is dropped. Always null-terminated.
class Text {
 public:
  KERNIX_HD Text() { buffer_[0] = '\0'; }

  KERNIX_HD const char* c_str() const { return buffer_; }
  KERNIX_HD bool empty() const { return size_ == 0; }

  KERNIX_HD KERNIX_COLD Text& Add(const char* text) {
    if (text == nullptr) text = "(null)";
    while (*text != '\0') Put(*text++);
    return *this;
  }

  KERNIX_HD KERNIX_COLD Text& Add(const char* text, unsigned long long size) {
    for (unsigned long long i = 0; i < size; ++i) Put(text[i]);
    return *this;
  }

  KERNIX_HD KERNIX_COLD Text& Add(char c) {
    Put(c);
    return *this;
  }

  KERNIX_HD KERNIX_COLD Text& AddUnsigned(unsigned long long value, unsigned base = 10) {
    char digits[24];
    int count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0) Put(digits[--count]);
    return *this;
  }

  KERNIX_HD KERNIX_COLD Text& AddSigned(long long value) {
    if (value >= 0) return AddUnsigned(static_cast<unsigned long long>(value));
    Put('-');
    return AddUnsigned(0ull - static_cast<unsigned long long>(value));
  }

  // Six significant digits, as "%g" prints them.
  KERNIX_HD KERNIX_COLD Text& AddReal(double value) {
    if (value != value) return Add("nan");
    if (value < 0) {
      Put('-');
      value = -value;
    }
    if (value > 1.7976931348623157e308) return Add("inf");
    if (value == 0) return Add('0');
    int exponent = 0;
    for (; value >= 10; ++exponent) value /= 10;
    for (; value < 1; --exponent) value *= 10;
    return AddDecimal(static_cast<unsigned>(value * 100000 + 0.5), exponent);
  }

 private:
  static constexpr int kCapacity = 512;

  // A NUL would end the message. Not recursive: ptxas must know the stack's size.
  KERNIX_HD void Put(char c) {
    if (c == '\0') Append('\\');
    Append(c == '\0' ? '0' : c);
  }

  KERNIX_HD void Append(char c) {
    if (size_ + 1 >= kCapacity) return;
    buffer_[size_++] = c;
    buffer_[size_] = '\0';
  }

  // `digits` has six decimal digits, the first of which precedes the point; or seven after rounding up to 10.
  KERNIX_HD KERNIX_COLD Text& AddDecimal(unsigned digits, int exponent) {
    if (digits >= 1000000) {
      digits /= 10;
      ++exponent;
    }
    char text[6];
    for (int i = 5; i >= 0; --i, digits /= 10) text[i] = static_cast<char>('0' + digits % 10);
    int count = 6;
    while (count > 1 && text[count - 1] == '0') --count;
    if (exponent < -4 || exponent >= 6) return AddScientific(text, count, exponent);
    if (exponent < 0) {
      Add("0.");
      for (int i = exponent; i < -1; ++i) Put('0');
      return Add(text, static_cast<unsigned>(count));
    }
    for (int i = 0; i < count || i <= exponent; ++i) {
      if (i == exponent + 1) Put('.');
      Put(i < count ? text[i] : '0');
    }
    return *this;
  }

  KERNIX_HD KERNIX_COLD Text& AddScientific(const char* digits, int count, int exponent) {
    Put(digits[0]);
    if (count > 1) Add('.').Add(digits + 1, static_cast<unsigned>(count - 1));
    Add(exponent < 0 ? "e-" : "e+");
    const unsigned magnitude = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
    if (magnitude < 10) Put('0');
    return AddUnsigned(magnitude);
  }

  int size_ = 0;
  char buffer_[kCapacity];
};

}  // namespace internal
}  // namespace BE
