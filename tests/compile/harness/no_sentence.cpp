// SPDX-License-Identifier: Apache-2.0
// finding: the case expects no sentence

#ifdef DDL_WRONG
static_assert(2 == 3, "ddl: two is not three; write two");
#else
static_assert(2 == 2);
#endif
