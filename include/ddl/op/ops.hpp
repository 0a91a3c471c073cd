// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every op of ours.
#include <ddl/op/average.hpp>
#include <ddl/op/bitwise.hpp>
#include <ddl/op/fingerprint.hpp>
#include <ddl/op/location.hpp>
#include <ddl/op/logical.hpp>
#include <ddl/op/maximum.hpp>
#include <ddl/op/minimum.hpp>
#include <ddl/op/op.hpp>
#include <ddl/op/product.hpp>
#include <ddl/op/sum.hpp>
