// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every element of ours; <ddl/element/complex.hpp> stays apart, for what it includes takes longer than all of these.
#include <ddl/element/bfloat16.hpp>
#include <ddl/element/element.hpp>
#include <ddl/element/float8.hpp>
#include <ddl/element/half.hpp>
#include <ddl/element/located.hpp>
