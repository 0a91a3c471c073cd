// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ddl/transport/threads.hpp>

#include <typeinfo>
#include <vector>

[[gnu::visibility("default")]] ddl::request begin_to_add(ddl::threads& team, std::vector<float>& values);
[[gnu::visibility("default")]] const std::type_info& what_it_throws();
