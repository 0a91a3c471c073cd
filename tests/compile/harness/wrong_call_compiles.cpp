// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the wrong call compiles

static_assert(2 == 2, "ddl: two is not three; write two");
