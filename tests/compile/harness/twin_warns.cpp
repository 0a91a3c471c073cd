// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the twin compiles with a diagnostic

#ifdef DDL_WRONG
static_assert(2 == 3, "ddl: two is not three; write two");
#else
#ifdef __clang__
#pragma clang diagnostic warning "-W#pragma-messages"
#endif
#pragma message("what -Werror lets pass is a diagnostic still")
#endif
