// Visibility of the public API. Everything else in zyfa's shared objects is hidden.
#pragma once

#if defined(__GNUC__) || defined(__clang__)
#define ZYFA_API __attribute__((visibility("default")))
#else
#define ZYFA_API
#endif
