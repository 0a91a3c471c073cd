// SPDX-License-Identifier: Apache-2.0
#pragma once

// Under a sanitizer, without optimisation, tests run a few ranks and lengths less.

#if defined(__SANITIZE_THREAD__)
inline constexpr bool under_thread_sanitizer = true;
inline constexpr bool under_address_sanitizer = false;
#elif defined(__has_feature)
inline constexpr bool under_thread_sanitizer = __has_feature(thread_sanitizer);
inline constexpr bool under_address_sanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool under_thread_sanitizer = false;
inline constexpr bool under_address_sanitizer = false;
#endif

inline constexpr bool under_a_sanitizer = under_thread_sanitizer || under_address_sanitizer;
