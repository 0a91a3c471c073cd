// SPDX-License-Identifier: Apache-2.0
// expect: ddl: two is not three; write two
// finding: the sentence is absent

#ifdef DDL_WRONG
static_assert(2 == 3, "no");
#else
static_assert(2 == 2);
#endif
