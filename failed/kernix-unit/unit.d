kernix-unit/unit.o: kernix-unit/unit.cc /usr/include/stdc-predef.h \
 kernix/brainevent/internal/handler.h \
 kernix/brainevent/internal/ffi_abi.h \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/stddef.h \
 /usr/lib/gcc/x86_64-linux-gnu/12/include/stdint.h /usr/include/stdint.h \
 /usr/include/x86_64-linux-gnu/bits/libc-header-start.h \
 /usr/include/features.h /usr/include/features-time64.h \
 /usr/include/x86_64-linux-gnu/bits/wordsize.h \
 /usr/include/x86_64-linux-gnu/bits/timesize.h \
 /usr/include/x86_64-linux-gnu/sys/cdefs.h \
 /usr/include/x86_64-linux-gnu/bits/long-double.h \
 /usr/include/x86_64-linux-gnu/gnu/stubs.h \
 /usr/include/x86_64-linux-gnu/gnu/stubs-64.h \
 /usr/include/x86_64-linux-gnu/bits/types.h \
 /usr/include/x86_64-linux-gnu/bits/typesizes.h \
 /usr/include/x86_64-linux-gnu/bits/time64.h \
 /usr/include/x86_64-linux-gnu/bits/wchar.h \
 /usr/include/x86_64-linux-gnu/bits/stdint-intn.h \
 /usr/include/x86_64-linux-gnu/bits/stdint-uintn.h \
 kernix/brainevent/tensor.h kernix/brainevent/check.h \
 /usr/include/c++/12/new \
 /usr/include/x86_64-linux-gnu/c++/12/bits/c++config.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/os_defines.h \
 /usr/include/x86_64-linux-gnu/c++/12/bits/cpu_defines.h \
 /usr/include/c++/12/pstl/pstl_config.h \
 /usr/include/c++/12/bits/exception.h kernix/brainevent/dtypes.h \
 /usr/include/c++/12/cstddef /usr/include/c++/12/cstdint \
 kernix/brainevent/internal/macros.h kernix/brainevent/internal/text.h \
 kernix/brainevent/common.h kernix/brainevent/dispatch.h \
 kernix/brainevent/internal/half.h /usr/include/c++/12/initializer_list \
 kernix-unit/kernix_handlers.h
