// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the wrong call prints 2 errors

#ifdef DDL_WRONG
static_assert(2 == 3, "ddl: two is not three; write two");
static_assert(2 == 4, "ddl: two is not four; write two");
#else
static_assert(2 == 2);
#endif
