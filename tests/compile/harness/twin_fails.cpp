// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the twin does not compile

static_assert(2 == 3, "ddl: two is not three; write two");
